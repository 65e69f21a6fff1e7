# daemon/core/adopt.c
s|l->delay_us = c->delay_us;|l->delay_us = 0;|
