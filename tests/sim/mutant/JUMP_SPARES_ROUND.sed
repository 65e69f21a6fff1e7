# daemon/core/hold.c
s|if (l->contender == CONTENDER_ASKING && l->round)|if (l->contender == CONTENDER_ASKING \&\& !l->round)|
