# daemon/core/renew.c
s|if (MUTATED(VOTE_KEPT))|if (a->code == 'B')|
