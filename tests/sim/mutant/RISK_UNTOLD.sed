# daemon/core/renew.c
s|engine_notice(e, NOTICE_RISK, l->holder, NULL, REFUSED_NOT);|(void)e;|
