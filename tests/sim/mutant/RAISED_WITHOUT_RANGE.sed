# daemon/core/op.c
s|.fence = op->fence + op->range, .range = beyond|.fence = op->fence, .range = beyond|
