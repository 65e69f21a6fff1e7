# daemon/core/adopt.c
s|l->lease.delay_us = c->delay_us;|l->lease.delay_us = 0;|
