/* SPDX-License-Identifier: BSD-2-Clause */
/* See signals.h. */
#include "client/cli/run/signals.h"
#include "client/cli/run/process.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

bool signal_is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

bool signal_has_shell(void)
{
	pid_t group = getpgrp(), above = getppid();

	while (above > 0 && getpgid(above) == group)
		above = process_parent(above);
	return above < 0 || (above > 0 && getsid(above) == getsid(0));
}
