/* SPDX-License-Identifier: BSD-2-Clause */
/* See signals.h. */
#include "client/signals.h"

#include <signal.h>
#include <stddef.h>

bool signal_is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}
