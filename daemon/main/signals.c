/* SPDX-License-Identifier: BSD-2-Clause */
/* The signals that the daemon handles. */
#include "daemon/main/internal.h"

#include <signal.h>

#define ENDS 2 /* the first of them end the daemon */

const int signals[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

static void first_signals_hold(size_t n, bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void signals_hold(bool hold)
{
	first_signals_hold(SIGNALS, hold);
}

void signals_hold_ends(bool hold)
{
	first_signals_hold(ENDS, hold);
}
