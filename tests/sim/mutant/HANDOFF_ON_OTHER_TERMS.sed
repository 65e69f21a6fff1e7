# daemon/core/grant.c
s|if (!next \|\| !next->renew \|\| !l->holder->renew \|\| next->ttl_us != l->lease.ttl_us \|\| next->delay_us != l->lease.delay_us)|if (!next \|\| !next->renew \|\| !l->holder->renew)|
