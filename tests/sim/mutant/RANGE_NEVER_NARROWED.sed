# daemon/core/tokens.c
s|t->narrow_until = instant_add(now, NARROW_US);|t->narrow_until = now;|
