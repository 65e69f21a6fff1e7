# daemon/core/ask.c
s|.fence = r->fence + r->range, .range = beyond|.fence = r->fence, .range = beyond|
