# daemon/core/round.c
s|return instant_diff(votes_deadline(&r->votes, nodes), now) > lead_us(r->ttl_us) + r->ttl_us / 10;|return instant_diff(votes_deadline(\&r->votes, nodes), now) > 0;|
