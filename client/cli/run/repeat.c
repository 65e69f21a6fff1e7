/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lead and work run CMD again and again: lead once for each term in which this host is the leader, work once for each job of a queue. Each run has a session
 * and a keeper of its own. So a term asks for the lock behind those that wait, and whatever becomes of CMD, of the keeper or of the connection, a job is done,
 * or is given back. A run begins only when nothing is left of the CMD of the one before. Between runs signals end this process.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/dial.h"
#include "client/cli/run/run.h"

#include <sys/wait.h>

#define TRUSTED_US 1000000 /* a request that was served for so long has no mistake */

/* Whether another term may follow. led: there was a term before, so the request has no mistake; trouble passes. */
static bool campaigns_again(const struct run_end *end, int code, bool led)
{
	(void)code;
	return end->lost ? !end->signal : led && !end->granted;
}

/* A CMD that cannot be executed would fail for every job. One that was executed may end with these codes as well: a shell does. */
static bool works_on(const struct run_end *end, int code, bool begun)
{
	if (end->signal)
		return false;
	if (end->granted)
		return end->started || (code != EXIT_CANNOT_EXEC && code != EXIT_NOT_FOUND);
	return begun && code == EXIT_FAILED;
}

/* first: as dial_waiting has left it of in. */
static int run_repeatedly(const struct invocation *in, const struct invocation *first, struct redlock *c, struct run_end *ret_end,
			  bool (*again)(const struct run_end *end, int code, bool begun))
{
	bool begun = false;
	sigset_t mask;
	int code;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (;;) {
		int64_t from = redlock_now_us();

		code = run_once(first, c, ret_end);
		first = in;
		begun |= works(in) && (ret_end->granted || redlock_now_us() - from > TRUSTED_US);
		if (!again(ret_end, code, begun))
			return code;
		begun = true;
		sigprocmask(SIG_SETMASK, &mask, NULL);
		if (!ret_end->granted)
			redial_pause();
		c = redial(in->addr);
		/* Nobody else waits for a keeper that lingered, or for what CMD left in the background. */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

int lead_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	struct run_end end;
	int code;

	if (!c)
		return EXIT_FAILED;
	code = run_repeatedly(in, in, c, &end, campaigns_again);
	return end.lost ? 128 + end.signal : code;
}

int work_main(const struct invocation *in)
{
	struct invocation left = *in;
	struct redlock *c = dial_waiting(&left, NULL);
	struct run_end end;
	int code;

	if (!c)
		return EXIT_FAILED;
	code = run_repeatedly(in, &left, c, &end, works_on);
	return end.signal ? 128 + end.signal : code;
}
