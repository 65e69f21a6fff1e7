# daemon/core/lease.c
s|MUTATED(LOSS_TOLD_LATE) ? 50 \* MSEC : -lead_us(x->ttl_us)|MUTATED(LOSS_TOLD_LATE) ? 50 * MSEC : 0|
