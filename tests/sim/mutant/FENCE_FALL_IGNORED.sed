# daemon/core/judge.c
s|if (a->fence < m->fence_when_asked)|if (a->fence < 0)|
