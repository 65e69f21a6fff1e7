# proto/reply.c
s|reply_int(r, field, us > 0 ? us / 1000 : 0);|reply_int(r, field, us > 0 ? (us + 999) / 1000 : 0);|
