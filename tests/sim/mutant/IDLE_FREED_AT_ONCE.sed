# daemon/core/hold.c
s|struct instant until = denied ? engine_belief(e, l) : holder_belief(e, l);|struct instant until = why == LOSS_IDLE ? e->core->now : denied ? engine_belief(e, l) : holder_belief(e, l);|
