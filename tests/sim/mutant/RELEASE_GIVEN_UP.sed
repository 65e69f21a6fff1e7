# daemon/core/ask.c
s|struct instant until = instant_add(t->core->now, t->core->conf.timeout_us + r->px_us + r->px_us / 50 + SEC);|struct instant until = instant_add(t->core->now, r->px_us / 2);|
