# daemon/core/renew.c
/renew_is_evicted(e, l, a)/s|renew_is_evicted(e, l, a)|renew_is_evicted(e, l, a) \&\& !l->holder|
