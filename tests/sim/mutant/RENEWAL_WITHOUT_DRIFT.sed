# daemon/core/renew.c
s|return instant_max(l->lease.votes\.until\[node\], vote_until(op->sent\[node\], renew_worth_us(l, op)));|return instant_max(l->lease.votes.until[node], instant_add(op->sent[node], renew_worth_us(l, op)));|
