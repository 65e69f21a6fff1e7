# daemon/core/acquire.c
s|return instant_diff(deadline, e->core->now) > lead_us(op->ttl_us) + op->ttl_us / 10;|return instant_diff(deadline, e->core->now) > 0;|
