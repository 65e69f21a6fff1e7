# daemon/core/renew.c
s|holder_notify(e, x, NOTICE_RISK);|(void)e;|
