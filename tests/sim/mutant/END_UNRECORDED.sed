# daemon/core/end.c
/^\ts->over = true;/{
	n
	s|remember_over(x, s);||
}
