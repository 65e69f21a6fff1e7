# daemon/core/renew.c
s|struct nodeset open = op->expired ? NODESET_NONE : op->open;|struct nodeset open = op->open;|
