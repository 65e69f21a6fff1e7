# daemon/core/renew.c
s|notices_add(&e->notices, NOTICE_RISK, l->holder, NULL, REFUSED_NOT);|(void)e;|
