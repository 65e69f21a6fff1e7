# daemon/core/observe.c
/^\t\tm->stalled = false;/{
	n
	s|ms->gained = true;||
}
