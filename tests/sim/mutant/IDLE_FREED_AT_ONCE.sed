# daemon/core/hold.c
s|struct instant until = denied ? hold_belief(e, l) : holder_belief(e, l);|struct instant until = why == LOSS_IDLE ? e->core->now : denied ? hold_belief(e, l) : holder_belief(e, l);|
