# daemon/core/round.c
s|if (a->class == ANSWER_UNKNOWN)|if (a->class == ANSWER_UNKNOWN \&\& r->px_us < 0)|
