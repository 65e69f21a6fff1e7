# daemon/core/hold.c
s|if (l->contender.state == CONTENDER_ASKING && l->round)|if (l->contender.state == CONTENDER_ASKING \&\& !l->round)|
