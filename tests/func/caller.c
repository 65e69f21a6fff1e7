/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that links libredlock: reads a call a line, and answers each with lines that end in "= result …". test_library.py drives it. The examples of
 * libredlock(3) are compiled as they are printed.
 */
#include "client/lib/redlock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_US    50000
#define PAUSE_US   50000
#define WORDS_MOST 8

/* --- what the examples call --- */

static void write_order(int order, int64_t fence)
{
	printf("- order %d %" PRId64 "\n", order, fence);
}

static void step(int64_t fence)
{
	printf("- step %" PRId64 "\n", fence);
}

static void row_told(void *arg, const struct redlock_line *row)
{
	struct redlock_bytes said = redlock_line_text(row);

	(void)arg;
	printf("- %.*s\n", (int)said.n, said.p);
}

static void forget_all(void)
{
	printf("- forget\n");
}

static void held(void *arg, const struct redlock_line *row)
{
	(void)arg;
	row_told(NULL, row);
}

static void changed(const struct redlock_line *push)
{
	row_told(NULL, push);
}

int lead(struct redlock *c, const char *name);
int follow(struct redlock *c);

#include "printed.inc"

/* --- calls --- */

static struct redlock *session;

static char *word[WORDS_MOST];
static unsigned words;

static int64_t number(unsigned i, int64_t otherwise)
{
	return i < words ? strtoll(word[i], NULL, 10) : otherwise;
}

static const char *text(unsigned i)
{
	return i < words ? word[i] : NULL;
}

static struct redlock_options options_of(unsigned wait_at)
{
	return (struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = number(wait_at, 0), .ttl_ms = number(wait_at + 1, 0)};
}

static void grant_told(const char *name, const struct redlock_grant *grant)
{
	printf("- grant %s %" PRId64 " %" PRId64 "\n", name, grant->fence, grant->count);
}

static int call_open(void)
{
	return redlock_open(text(1), number(2, 5000), &session);
}

static int call_timeout(void)
{
	return redlock_set_timeout(session, number(1, 5000));
}

static int call_hello(void)
{
	struct redlock_session options = {.size = sizeof(options), .label = text(1), .grace_ms = number(2, 0), .heartbeat_ms = number(3, 0)};

	return redlock_hello(session, &options);
}

static int call_lock(void)
{
	struct redlock_options options = options_of(2);
	struct redlock_grant grant;
	int r = redlock_lock(session, word[1], &options, &grant);

	if (!r)
		grant_told(word[1], &grant);
	return r;
}

/* Of two names. */
static int call_all(void)
{
	struct redlock_options options = options_of(3);
	struct redlock_grant grants[2];
	int r = redlock_lock_all(session, (const char *const *)&word[1], 2, &options, grants);

	for (unsigned i = 0; !r && i < 2; i++)
		grant_told(word[i + 1], &grants[i]);
	return r;
}

static int call_any(void)
{
	struct redlock_options options = options_of(3);
	struct redlock_grant grant;
	size_t which;
	int r = redlock_lock_any(session, (const char *const *)&word[1], 2, &options, &which, &grant);

	if (!r)
		grant_told(word[which + 1], &grant);
	return r;
}

/* Waits in the queue until the line "cancel" or "finish" comes. */
static int call_queue(void)
{
	return redlock_lock_send(session, word[1],
			&(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = REDLOCK_FOREVER, .cancellable = true});
}

static int call_cancel(void)
{
	int r = redlock_cancel(session);

	return r ? r : redlock_finish(session, number(1, 5000));
}

static int call_finish(void)
{
	return redlock_finish(session, number(1, 5000));
}

static int call_permit(void)
{
	struct redlock_options options = {.size = sizeof(options), .slots = (int)number(2, 1)};
	struct redlock_grant grant;
	int r = redlock_lock(session, word[1], &options, &grant);
	struct redlock_bytes permit = redlock_line_find(redlock_answer(session), "permit");

	if (!r)
		printf("- permit %.*s\n", (int)permit.n, permit.p);
	return r;
}

static int call_take(void)
{
	struct redlock_options options = options_of(2);
	struct redlock_job job;
	int r = redlock_take(session, word[1], &options, &job);

	if (!r) {
		printf("- job %s %" PRId64 " %s\n", job.id, job.attempt, job.payload);
		free(job.payload);
	}
	return r;
}

static int call_done(void)
{
	return redlock_done(session, word[1], word[2]);
}

static int call_check(void)
{
	struct redlock_grant grant;
	int r = redlock_check(session, word[1], &grant);

	if (!r)
		grant_told(word[1], &grant);
	return r;
}

static int call_unlock(void)
{
	return redlock_unlock(session, word[1], 0);
}

static int call_show(void)
{
	return redlock_show(session, word[1], &(struct redlock_view){.size = sizeof(struct redlock_view), .all = true, .former = true}, row_told, NULL);
}

/* Page by page. */
static int call_list(void)
{
	static const char *const of[] = {"locks", "sessions", "nodes", "queues", "jobs"};
	struct redlock_page page = {.size = sizeof(page), .prefix = text(2), .limit = number(3, 0)};
	unsigned what = 0;
	int r;

	while (what < 5 && strcmp(of[what], word[1]) != 0)
		what++;
	do {
		r = redlock_list(session, (enum redlock_listing)what, &page, row_told, NULL);
		printf("- page %" PRId64 "\n", r ? -1 : page.more);
	} while (!r && page.more);
	return r;
}

static int call_stats(void)
{
	return redlock_stats(session, row_told, NULL);
}

static int call_ping(void)
{
	return redlock_ping(session);
}

static int call_complete(void)
{
	return redlock_complete(session, text(1), number(2, 0), row_told, NULL);
}

static int call_recent(void)
{
	return redlock_recent(session, text(1), number(2, 0), row_told, NULL);
}

static int call_watch(void)
{
	return redlock_watch(session, text(1));
}

static int call_unwatch(void)
{
	return redlock_unwatch(session, text(1));
}

static int call_subscribe(void)
{
	return redlock_subscribe(session);
}

static int call_unsubscribe(void)
{
	return redlock_unsubscribe(session);
}

static int call_push(void)
{
	const struct redlock_line *push;
	int r = redlock_wait_push(session, number(1, 5000), &push);

	if (!r)
		row_told(NULL, push);
	return r;
}

static int number_told(int r, int64_t told)
{
	if (!r)
		printf("- number %" PRId64 "\n", told);
	return r;
}

static int call_break(void)
{
	int64_t told = -2;
	int r = redlock_break(session, word[1], &told);

	return number_told(r, told);
}

static int call_kill(void)
{
	int64_t told = -2;
	int r = redlock_kill(session, number(1, 0), &told);

	return number_told(r, told);
}

static int call_drain(void)
{
	int64_t told = -2;
	int r = redlock_drain(session, number(1, REDLOCK_FOREVER), &told);

	return number_told(r, told);
}

static int call_close(void)
{
	redlock_close(session);
	session = NULL;
	return 0;
}

/* --- the examples --- */

static int call_lead(void)
{
	return lead(session, word[1]);
}

static int call_follow(void)
{
	return follow(session);
}

/* At the daemon of $REDLOCK_ADDR. */
static int call_first(void)
{
	return first();
}

static const struct call {
	const char *name;
	int (*run)(void);
} calls[] = {
	{"open", call_open}, {"timeout", call_timeout}, {"hello", call_hello}, {"lock", call_lock}, {"all", call_all}, {"any", call_any},
	{"queue", call_queue}, {"cancel", call_cancel}, {"finish", call_finish}, {"permit", call_permit}, {"check", call_check}, {"unlock", call_unlock},
	{"show", call_show}, {"list", call_list}, {"stats", call_stats}, {"ping", call_ping}, {"complete", call_complete}, {"recent", call_recent},
	{"watch", call_watch}, {"unwatch", call_unwatch}, {"subscribe", call_subscribe}, {"unsubscribe", call_unsubscribe},
	{"push", call_push}, {"break", call_break}, {"kill", call_kill}, {"drain", call_drain}, {"close", call_close}, {"lead", call_lead},
	{"follow", call_follow}, {"first", call_first}, {"take", call_take}, {"done", call_done},
};

static int call(char *line)
{
	char *save, *next = strtok_r(line, " \n", &save);

	for (words = 0; next && words < WORDS_MOST; next = strtok_r(NULL, " \n", &save))
		word[words++] = next;
	for (size_t i = 0; words && i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, word[0]))
			return calls[i].run();
	printf("- no such call\n");
	exit(2);
}

int main(void)
{
	char line[2000];
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		r = call(line);
		if (r < 0)
			printf("= %s\n", strerrorname_np(-r));
		else
			printf("= %d%s%s\n", r, r == REDLOCK_REFUSED ? " " : "", r == REDLOCK_REFUSED ? redlock_code(session) : "");
	}
	redlock_close(session);
	return 0;
}
