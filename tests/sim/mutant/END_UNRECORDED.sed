# daemon/core/command.c
/^\ts->over = true;/{
	n
	s|remember_over(x, s);||
}
