# daemon/core/grant.c
s|l->holder->count += heard && !c->unheard;|l->holder->count += heard \&\& false;|
