# daemon/core/hold.c
s|if (l->contender.state == CONTENDER_ASKING && l->contender.round)|if (l->contender.state == CONTENDER_ASKING \&\& !l->contender.round)|
