# daemon/core/judge.c
s|if (a->probe->evicted > m->evicted)|if (a->probe->evicted > m->evicted \&\& !m->connected)|
