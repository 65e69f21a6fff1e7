# daemon/core/acquire.c
s|op_send_extend(&e->ops, op, i, op->fence + op->range, false);|op_send_extend(\&e->ops, op, i, op->fence, false);|
