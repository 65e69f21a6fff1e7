# daemon/core/renew.c
/bool tells = /s|= .*;|= false \&\& a;|
