# daemon/core/end.c
s|c->believed = c->not_notified ? INSTANT_PAST : hold_belief(x->engine, c->lock);|c->believed = c->not_notified ? INSTANT_PAST : lock_deadline(\&x->engine->table, c->lock);|
