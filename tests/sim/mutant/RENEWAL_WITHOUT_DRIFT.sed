# daemon/core/renew.c
s|return instant_min(op->votes\.until\[node\], vote_until(op->sent\[node\], most_us));|return instant_add(op->sent[node], op->ttl_us < most_us ? op->ttl_us : most_us);|
