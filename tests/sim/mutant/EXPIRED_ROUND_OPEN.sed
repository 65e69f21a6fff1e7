# daemon/core/renew.c
s|uint16_t open = op->expired ? 0 : op->open;|uint16_t open = op->open;|
