# daemon/core/hold.c
s|OP_LEAVE : OP_RELEASE, l->lease.delay_us, NULL);|OP_LEAVE : OP_RELEASE, l->lease.delay_us / 2, NULL);|
