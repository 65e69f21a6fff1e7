# daemon/core/hold.c
s|release_begin(e, &l->lease, keep_us > 0 ? RELEASE_LEAVE : RELEASE_DELETE, keep_us, p);|release_begin(e, \&l->lease, RELEASE_DELETE, keep_us, p);|
