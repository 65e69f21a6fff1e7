# daemon/core/observe.c
/^static void member_recovers/,/^}/s|ms->gained = true;||
