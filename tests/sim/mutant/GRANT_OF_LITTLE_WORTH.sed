# daemon/core/round.c
s|return instant_diff(votes_deadline(&op->votes, nodes), now) > lead_us(op->ttl_us) + op->ttl_us / 10;|return instant_diff(votes_deadline(\&op->votes, nodes), now) > 0;|
