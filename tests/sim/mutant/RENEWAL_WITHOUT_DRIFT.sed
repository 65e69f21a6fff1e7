# daemon/core/renew.c
s|return instant_max(x->votes\.until\[node\], vote_until(r->calls.sent\[node\], renew_worth_us(x, r)));|return instant_max(x->votes.until[node], instant_add(r->calls.sent[node], renew_worth_us(x, r)));|
