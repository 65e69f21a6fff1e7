/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lead: runs CMD while this host is the leader, once for each term. Each term has a session of its own, and asks for the lock behind those that wait. A term
 * begins only when nothing is left of the CMD of the term before. Between terms signals end this process.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/run/run.h"

#include <signal.h>
#include <sys/wait.h>

/* Nobody else waits for a keeper that lingered, or for what CMD left in the background. */
static void reap_left(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Whether to campaign again. led: there was a term before, so the request has no mistake; trouble passes. */
static bool campaigns_again(const struct run_end *end, bool led)
{
	return end->lost ? !end->signal : led && !end->granted;
}

int lead_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	struct run_end end;
	bool led = false;
	sigset_t mask;
	int code;

	if (!c)
		return EXIT_FAILED;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (;;) {
		code = run_once(in, c, &end);
		if (!campaigns_again(&end, led))
			break;
		led = true;
		sigprocmask(SIG_SETMASK, &mask, NULL);
		if (!end.granted)
			redial_pause();
		c = redial(in->addr);
		reap_left();
	}
	return end.lost ? 128 + end.signal : code;
}
