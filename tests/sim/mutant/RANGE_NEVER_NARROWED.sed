# daemon/core/retry.c
s|e->narrow_until = instant_add(e->core->now, NARROW_US);|e->narrow_until = e->core->now;|
