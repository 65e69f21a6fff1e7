/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * once: CMD begins at most once in --every, on all hosts that share the stores. What came of it is a job of the queue once/NAME, which nobody takes: it is due
 * when CMD may begin again, by the clock of its home. It is read and written under the lock NAME. So redlock runs itself under that lock, as the parent of CMD.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/json.h"
#include "client/cli/run/queue_place.h"
#include "client/cli/run/run.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUEUE      "once/"
#define INNER      "REDLOCK_ONCE" /* in the environment of the redlock that runs under the lock: NAME */
#define ROWS_MOST  8 /* one, and what runs left that broke off between two requests */
#define SHOWN_MOST 256

struct record {
	char id[REDLOCK_JOB_BYTES], host[65], began[32];
	int64_t due_ms, took_ms;
	int status;
};

struct history {
	struct record rows[ROWS_MOST];
	unsigned n, last; /* the one that is due last */
};

/* --- what is kept of a run --- */

static void field_keep(const struct redlock_line *row, const char *field, char *out, size_t size)
{
	struct redlock_bytes value = redlock_line_find(row, field);
	size_t n = MIN(value.n, size - 1);

	memcpy(out, value.n ? value.p : "", n);
	out[n] = '\0';
}

static void history_add(void *arg, const struct redlock_line *row)
{
	struct history *h = arg;
	struct record *r = &h->rows[h->n];
	char payload[SHOWN_MOST];

	if (h->n == ROWS_MOST)
		return;
	*r = (struct record){.due_ms = redlock_line_number(row, "due_ms", 0)};
	field_keep(row, "job", r->id, sizeof(r->id));
	field_keep(row, "payload", payload, sizeof(payload));
	if (sscanf(payload, "host=%64s began=%31s took_ms=%" SCNd64 " status=%d", r->host, r->began, &r->took_ms, &r->status) != 4)
		return;
	if (r->due_ms > h->rows[h->last].due_ms)
		h->last = h->n;
	h->n++;
}

static int history_read(struct redlock *c, const char *queue, struct history *ret_history)
{
	struct redlock_page page = {.size = sizeof(page), .prefix = queue, .limit = ROWS_MOST};

	*ret_history = (struct history){0};
	return redlock_list(c, REDLOCK_JOBS, &page, history_add, ret_history);
}

static const struct record *history_last(const struct history *h)
{
	return h->n ? &h->rows[h->last] : NULL;
}

/* The new one is stored before the old ones go. */
static int history_write(struct redlock *c, const char *queue, const struct history *old, const struct record *now)
{
	struct redlock_deferral options = {.size = sizeof(options), .delay_ms = now->due_ms};
	char payload[SHOWN_MOST];
	int n = snprintf(payload, sizeof(payload), "host=%s began=%s took_ms=%" PRId64 " status=%d", now->host, now->began, now->took_ms, now->status);
	int r = redlock_defer(c, queue, (struct redlock_bytes){payload, (size_t)n}, &options, NULL);

	for (unsigned i = 0; !r && i < old->n; i++)
		if (redlock_drop(c, queue, old->rows[i].id) < 0)
			break; /* the next run drops it */
	return r;
}

/* --- how it is told --- */

static void record_text(const struct record *r, const char *name, char *out, size_t size)
{
	char shown[200], took[AGE_BYTES], rest[AGE_BYTES];

	shown_text(span_of(name), shown, sizeof(shown));
	snprintf(out, size, "%s ran on %s at %s for %s, status %d; it may begin again in %s", shown, r->host, r->began, age_text(r->took_ms, took), r->status,
		 age_text(r->due_ms, rest));
}

static int status_print(const struct invocation *in, const struct record *r)
{
	char text[SHOWN_MOST + 200];

	if (!r) {
		complain("%s: no run is known", in->operand);
		return EXIT_NO;
	}
	if (in->json) {
		fputs("{\"name\":", stdout);
		json_print_text(span_of(in->operand));
		fputs(",\"host\":", stdout);
		json_print_text(span_of(r->host));
		printf(",\"began\":\"%s\",\"took_ms\":%" PRId64 ",\"status\":%d,\"next_ms\":%" PRId64 "}\n", r->began, r->took_ms, r->status, r->due_ms);
	} else {
		record_text(r, in->operand, text, sizeof(text));
		puts(text);
	}
	return output_end(r->status ? EXIT_NO : EXIT_SUCCESS);
}

static int status_main(const struct invocation *in, const char *queue)
{
	struct redlock *c = dial(in->addr);
	struct history h;
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	r = exit_of(c, history_read(c, queue, &h));
	redlock_close(c);
	return r ? r : status_print(in, history_last(&h));
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

static int run_and_record(const struct invocation *in, struct redlock *c, const char *queue, const struct history *h)
{
	struct record now = {.host = "?"};
	int64_t from = redlock_now_us();
	time_t at = time(NULL);
	struct tm utc;
	int r;

	gethostname(now.host, sizeof(now.host) - 1);
	strftime(now.began, sizeof(now.began), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
	now.status = command_run(in->argv);
	now.took_ms = (redlock_now_us() - from) / 1000;
	now.due_ms = MAX(in->every_ms - now.took_ms, 0);
	redlock_close(c);
	if (now.status == EXIT_CANNOT_EXEC || now.status == EXIT_NOT_FOUND)
		return now.status; /* another host may be able to */
	c = redial(in->addr); /* CMD may have run over a restart of the daemon */
	if (!still_held(c, in->operand)) {
		complain("%s was lost, so this run does not count", in->operand);
	} else {
		r = history_write(c, queue, h, &now);
		if (r)
			complain("this run does not count: %s", redlock_errmsg(c));
	}
	redlock_close(c);
	return now.status;
}

static int inner_main(const struct invocation *in, const char *queue)
{
	struct redlock *c = dial(in->addr);
	const struct record *last;
	char text[SHOWN_MOST + 200];
	struct history h;

	unsetenv(INNER);
	if (!c)
		return EXIT_FAILED;
	if (history_read(c, queue, &h)) {
		complain("%s", redlock_errmsg(c));
		redlock_close(c);
		return EXIT_FAILED;
	}
	last = history_last(&h);
	if (!last || last->due_ms <= 0)
		return run_and_record(in, c, queue, &h);
	record_text(last, in->operand, text, sizeof(text));
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
	char queue[REDLOCK_NAME_BYTES];

	if (snprintf(queue, sizeof(queue), QUEUE "%s", in->operand) >= (int)sizeof(queue)) {
		complain("the name is too long: at most %zu bytes", sizeof(queue) - sizeof(QUEUE));
		return in->status ? EX_USAGE : EXIT_FAILED;
	}
	if (in->status)
		return status_main(in, queue);
	if (inner && !strcmp(inner, in->operand))
		return inner_main(in, queue);
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
