# daemon/core/hold.c
s|release_begin(e, l, keep_us > 0 ? OP_LEAVE : OP_RELEASE, keep_us, p);|release_begin(e, l, OP_RELEASE, keep_us, p);|
