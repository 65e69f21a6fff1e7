# daemon/core/renew.c
/renew_is_evicted(e, x, a)/s|renew_is_evicted(e, x, a)|renew_is_evicted(e, x, a) \&\& !x->name|
