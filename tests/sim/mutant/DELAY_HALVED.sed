# daemon/core/hold.c
s|OP_LEAVE : OP_RELEASE, l->delay_us, NULL);|OP_LEAVE : OP_RELEASE, l->delay_us / 2, NULL);|
