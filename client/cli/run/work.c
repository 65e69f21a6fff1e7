/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work: runs CMD for one job of a queue after the other. Each job has a session and a keeper of its own, so whatever becomes of CMD, of the keeper or of the
 * connection, the job is done, or is given back. Also defer, retry and drop.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/json.h"
#include "client/cli/run/run.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define TRUSTED_US 1000000 /* a request that was served for so long has no mistake */

/* A CMD that cannot be executed would fail for every job. One that was executed may end with these codes as well: a shell does. */
static bool goes_on(const struct run_end *end, int code, bool begun)
{
	if (end->signal)
		return false;
	if (end->granted)
		return end->started || (code != EXIT_CANNOT_EXEC && code != EXIT_NOT_FOUND);
	return begun && code == EXIT_FAILED;
}

int work_main(const struct invocation *in)
{
	struct invocation left = *in;
	struct redlock *c = dial_waiting(&left, NULL);
	struct run_end end;
	bool begun = false;
	sigset_t mask;
	int code;

	if (!c)
		return EXIT_FAILED;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (;;) {
		int64_t from = redlock_now_us();

		code = run_once(&left, c, &end);
		left = *in;
		begun |= end.granted || redlock_now_us() - from > TRUSTED_US;
		if (!goes_on(&end, code, begun))
			break;
		sigprocmask(SIG_SETMASK, &mask, NULL);
		if (!end.granted)
			redial_pause();
		c = redial(in->addr);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return end.signal ? 128 + end.signal : code;
}

/* --- defer, retry, drop --- */

/* -1: after a complaint. */
static ssize_t input_read(char *out)
{
	size_t n = fread(out, 1, PAYLOAD_MAX + 1, stdin);

	if (ferror(stdin))
		complain("cannot read the input: %s", strerror(errno));
	else if (n > PAYLOAD_MAX)
		complain("the input is too long: a payload has at most %d bytes", PAYLOAD_MAX);
	else
		return (ssize_t)n;
	return -1;
}

int defer_main(const struct invocation *in)
{
	struct redlock_deferral options = {.size = sizeof(options), .delay_ms = in->delay_ms, .lock = in->lock, .id = in->id};
	static char text[PAYLOAD_MAX + 1];
	char id[REDLOCK_JOB_BYTES];
	struct redlock_bytes payload = {in->names_n > 1 ? in->names[1] : text, 0};
	ssize_t n = in->names_n > 1 ? (ssize_t)strlen(in->names[1]) : input_read(text);
	struct redlock *c = n < 0 ? NULL : dial(in->addr);
	int r;

	if (!c)
		return n < 0 ? EX_USAGE : EX_UNAVAILABLE;
	payload.n = (size_t)n;
	r = exit_of(c, redlock_defer(c, in->operand, payload, &options, id));
	if (!r && in->json)
		json_print_line(redlock_answer(c), false);
	else if (!r)
		puts(id);
	redlock_close(c);
	return r;
}

/* About one job of a queue: retry and drop. */
static int job_main(const struct invocation *in, int (*act)(struct redlock *c, const struct invocation *in))
{
	struct redlock *c;
	int r;

	if (in->names_n < 2) {
		complain("an argument is missing; the usage is: redlock %s %s", in->command->word, in->command->operands);
		return EX_USAGE;
	}
	c = dial(in->addr);
	if (!c)
		return EX_UNAVAILABLE;
	r = exit_of(c, act(c, in));
	if (!r && in->json)
		json_print_line(redlock_answer(c), false);
	redlock_close(c);
	return r;
}

static int retry_act(struct redlock *c, const struct invocation *in)
{
	return redlock_retry(c, in->operand, in->names[1], in->delay_ms);
}

static int drop_act(struct redlock *c, const struct invocation *in)
{
	return redlock_drop(c, in->operand, in->names[1]);
}

int retry_main(const struct invocation *in)
{
	return job_main(in, retry_act);
}

int drop_main(const struct invocation *in)
{
	return job_main(in, drop_act);
}
