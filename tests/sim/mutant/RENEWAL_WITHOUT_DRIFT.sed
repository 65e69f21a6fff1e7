# daemon/core/renew.c
s|struct instant vote = instant_min(op->votes\.until\[node\], vote_until(op->sent\[node\], most_us));|struct instant vote = instant_add(op->sent[node], op->ttl_us < most_us ? op->ttl_us : most_us);|
