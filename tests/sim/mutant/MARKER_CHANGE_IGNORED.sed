# daemon/core/observe.c
s/if ((a->code == 'Q' || m->suspect/if ((m->suspect/
