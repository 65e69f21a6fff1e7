# daemon/core/renew.c
s|return instant_max(l->lease.votes\.until\[node\], vote_until(r->calls.sent\[node\], renew_worth_us(l, r)));|return instant_max(l->lease.votes.until[node], instant_add(r->calls.sent[node], renew_worth_us(l, r)));|
