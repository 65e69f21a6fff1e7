# daemon/core/op.c
s|struct instant until = instant_add(t->core->now, t->core->conf.timeout_us + op->px_us + op->px_us / 50 + SEC);|struct instant until = instant_add(t->core->now, op->px_us / 2);|
