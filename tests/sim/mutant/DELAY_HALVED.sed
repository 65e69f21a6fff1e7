# daemon/core/hold.c
s|RELEASE_LEAVE : RELEASE_DELETE, l->lease.delay_us, NULL);|RELEASE_LEAVE : RELEASE_DELETE, l->lease.delay_us / 2, NULL);|
