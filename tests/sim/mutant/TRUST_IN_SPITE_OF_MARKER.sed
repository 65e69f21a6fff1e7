# daemon/core/member.c
s|if (ms->trusting && marker\.n > 0)|if (ms->trusting \&\& marker.n > 0 \&\& !m->connected)|
