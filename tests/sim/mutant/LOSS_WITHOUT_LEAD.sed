# daemon/core/lock.c
s|MUTATED(LOSS_TOLD_LATE) ? 50 \* MSEC : -lead_us(l->ttl_us)|MUTATED(LOSS_TOLD_LATE) ? 50 * MSEC : 0|
