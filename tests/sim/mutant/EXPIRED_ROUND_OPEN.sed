# daemon/core/renew.c
s|struct nodeset open = r->expired ? NODESET_NONE : r->calls.open;|struct nodeset open = r->calls.open;|
