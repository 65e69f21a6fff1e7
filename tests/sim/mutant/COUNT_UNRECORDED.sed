# daemon/core/locks.c
/--c->count > 0/,/return;/s|remember_held(x, c);||
