/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * once: CMD begins at most once in --every, on all hosts that share the stores. The result is a job of the queue once/NAME, which nobody takes: it is due
 * when CMD may begin again, by the clock of its home. It is read and written under the lock NAME. So redlock runs itself under that lock, as the parent of CMD.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/field.h"
#include "client/cli/run/queue_place.h"
#include "client/cli/run/run.h"
#include "client/lib/display.h"
#include "client/lib/once.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INNER      "REDLOCK_ONCE" /* in the environment of the redlock that runs under the lock: NAME */
#define SHOWN_MOST 256

/* --- how it is told --- */

static void record_text(const struct redlock_run *r, const char *name, char *out, size_t size)
{
	char shown[200], took[AGE_BYTES], rest[AGE_BYTES];

	shown_text(span_of(name), shown, sizeof(shown));
	snprintf(out, size, "%s ran on %s at %s for %s, status %d; it may begin again in %s", shown, r->host, r->began, age_text(r->took_ms, took), r->status,
		 age_text(r->next_ms, rest));
}

static int status_print(const struct invocation *in, const struct redlock_run *r)
{
	char text[SHOWN_MOST + 200];

	if (!r->ran) {
		complain("%s: no run is known", in->operand);
		return EXIT_NO;
	}
	if (in->json) {
		json_print_text("{\"name\":", in->operand);
		json_print_text(",\"host\":", r->host);
		printf(",\"began\":\"%s\",\"took_ms\":%" PRId64 ",\"status\":%d,\"next_ms\":%" PRId64 "}\n", r->began, r->took_ms, r->status, r->next_ms);
	} else {
		record_text(r, in->operand, text, sizeof(text));
		puts(text);
	}
	return output_end(r->status ? EXIT_NO : EXIT_SUCCESS);
}

static int status_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	struct redlock_run last;
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	r = exit_of(c, redlock_once_status(c, in->operand, &last));
	redlock_close(c);
	return r ? r : status_print(in, &last);
}

/* --- under the lock --- */

/* Runs CMD, and returns as a shell tells its end. What asks CMD to end does not end this process, which has to tell of it. */
static int command_run(char **argv)
{
	static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t all, mask;
	pid_t pid;
	int status;

	/* Also what comes before they are ignored must not end this process, once CMD has begun. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	pid = fork();
	if (pid < 0) {
		complain("cannot start: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &mask, NULL);
		execvp(argv[0], argv);
		status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC;
		complain("%s: %s", argv[0], strerror(errno));
		_exit(status);
	}
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
		signal(asks[i], SIG_IGN);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A CMD that was stopped since its lock was lost has not run: somebody else may run it already. */
static bool still_held(struct redlock *c, const char *name)
{
	const char *fence = getenv("REDLOCK_FENCE");
	struct queue_place place = {.session = "", .fence = fence ? strtoll(fence, NULL, 10) : -1};

	return !queue_place_ask(c, name, &place) && place.fence_holds;
}

static int run_and_record(const struct invocation *in, struct redlock *c, const struct once_records *old)
{
	struct redlock_run now;
	int64_t begun_us = once_begin(&now);
	int r;

	once_end(&now, begun_us, in->every_ms, command_run(in->argv));
	redlock_close(c);
	if (now.status == EXIT_CANNOT_EXEC || now.status == EXIT_NOT_FOUND)
		return now.status; /* another host may be able to */
	c = redial(in->addr); /* CMD may have run over a restart of the daemon */
	if (!still_held(c, in->operand)) {
		complain("%s was lost, so this run does not count", in->operand);
	} else {
		r = once_write(c, in->operand, old, &now);
		if (r)
			complain("this run does not count: %s", redlock_errmsg(c));
	}
	redlock_close(c);
	return now.status;
}

static int inner_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	char text[SHOWN_MOST + 200];
	struct once_records known;

	unsetenv(INNER);
	if (!c)
		return EXIT_FAILED;
	if (once_read(c, in->operand, &known)) {
		complain("%s", redlock_errmsg(c));
		redlock_close(c);
		return EXIT_FAILED;
	}
	if (known.last.next_ms <= 0)
		return run_and_record(in, c, &known);
	record_text(&known.last, in->operand, text, sizeof(text));
	if (!in->quiet)
		complain("%s", text);
	redlock_close(c);
	return EXIT_SUCCESS;
}

int once_main(const struct invocation *in)
{
	static char self[] = "/proc/self/exe";
	const char *inner = getenv(INNER);
	struct invocation outer = *in;
	struct run_end end;
	struct redlock *c;

	if (strlen(in->operand) > ONCE_NAME_MOST) {
		complain("the name is too long: at most %zu bytes", ONCE_NAME_MOST);
		return in->status ? EX_USAGE : EXIT_FAILED;
	}
	if (in->status)
		return status_main(in);
	if (inner && !strcmp(inner, in->operand))
		return inner_main(in);
	outer.wait_ms = 0;
	outer.busy_exit = EXIT_SUCCESS;
	outer.executed = in->words;
	in->words[0] = self;
	c = dial_waiting(&outer, NULL);
	if (!c)
		return EXIT_FAILED;
	if (setenv(INNER, in->operand, 1)) {
		complain("cannot start: %s", strerror(errno));
		redlock_close(c);
		return EXIT_FAILED;
	}
	return run_once(&outer, c, &end);
}
