# daemon/core/grant.c
s|l->holder->count += heard && !c->not_notified;|l->holder->count += heard \&\& false;|
