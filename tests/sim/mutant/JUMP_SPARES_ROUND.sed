# daemon/core/hold.c
s|if (l->state == LOCK_ACQUIRING && l->round)|if (l->state == LOCK_ACQUIRING \&\& !l->round)|
