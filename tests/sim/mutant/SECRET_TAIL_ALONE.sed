# daemon/core/resume.c
s|for (size_t i = 0; i < secret\.n && i < sizeof(s->secret) - 1; i++)|for (size_t i = 24; i < secret.n \&\& i < sizeof(s->secret) - 1; i++)|
