# daemon/core/acquire.c
s|op_send_extend(&e->ops, op, i, op->fence + op->range, INSTANT_PAST);|op_send_extend(\&e->ops, op, i, op->fence, INSTANT_PAST);|
