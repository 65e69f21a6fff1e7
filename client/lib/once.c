/* SPDX-License-Identifier: BSD-2-Clause */
/* See once.h. Also the public functions redlock_once and redlock_once_status (redlock.h). */
#include "client/lib/once.h"
#include "client/lib/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#define RECORD_BYTES 256

/* --- the records --- */

static void record_add(void *arg, const struct redlock_line *row)
{
	struct redlock_run run = {.ran = true, .next_ms = redlock_line_number(row, "due_ms", 0)};
	struct once_records *all = arg;
	char payload[RECORD_BYTES];

	line_copy(row, "payload", payload, sizeof(payload));
	if (all->n == ONCE_ROWS ||
	    sscanf(payload, "host=%64s began=%31s took_ms=%" SCNd64 " status=%d", run.host, run.began, &run.took_ms, &run.status) != 4)
		return;
	line_copy(row, "job", all->ids[all->n++], REDLOCK_JOB_BYTES);
	if (!all->last.ran || run.next_ms > all->last.next_ms)
		all->last = run;
}

static int queue_of(struct redlock *c, const char *name, char queue[REDLOCK_NAME_BYTES])
{
	if (strlen(name) > ONCE_NAME_MOST)
		return conn_error(c, -EMSGSIZE, "the name is too long: at most %zu bytes", ONCE_NAME_MOST);
	snprintf(queue, REDLOCK_NAME_BYTES, ONCE_QUEUE "%s", name);
	return 0;
}

int once_read(struct redlock *c, const char *name, struct once_records *ret_records)
{
	char queue[REDLOCK_NAME_BYTES];
	struct redlock_page page = {.size = sizeof(page), .prefix = queue, .limit = ONCE_ROWS};
	int r = queue_of(c, name, queue);

	*ret_records = (struct once_records){0};
	return r ? r : redlock_list(c, REDLOCK_JOBS, &page, record_add, ret_records);
}

int64_t once_begin(struct redlock_run *ret_run)
{
	time_t at = time(NULL);
	struct tm utc;

	*ret_run = (struct redlock_run){.ran = true, .host = "?"};
	gethostname(ret_run->host, sizeof(ret_run->host) - 1);
	strftime(ret_run->began, sizeof(ret_run->began), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
	return redlock_now_us();
}

void once_end(struct redlock_run *run, int64_t begun_us, int64_t every_ms, int status)
{
	run->status = status;
	run->took_ms = (redlock_now_us() - begun_us) / 1000;
	run->next_ms = MAX(every_ms - run->took_ms, 0);
}

int once_write(struct redlock *c, const char *name, const struct once_records *old, const struct redlock_run *run)
{
	struct redlock_deferral options = {.size = sizeof(options), .delay_ms = run->next_ms};
	char queue[REDLOCK_NAME_BYTES], payload[RECORD_BYTES];
	int n, r = queue_of(c, name, queue);

	if (r)
		return r;
	n = snprintf(payload, sizeof(payload), "host=%s began=%s took_ms=%" PRId64 " status=%d", run->host, run->began, run->took_ms, run->status);
	r = redlock_defer(c, queue, (struct redlock_bytes){payload, (size_t)n}, &options, NULL);
	for (unsigned i = 0; !r && i < old->n; i++)
		if (redlock_drop(c, queue, old->ids[i]))
			break; /* the next run will drop it */
	return r;
}

/* --- a run --- */

static int run_and_record(struct redlock *c, const char *name, int64_t every_ms, int (*run)(void *arg), void *arg, const struct once_records *old,
			  struct redlock_run *ret_run)
{
	int64_t begun_us = once_begin(ret_run);
	struct redlock_grant grant;
	int r;

	once_end(ret_run, begun_us, every_ms, run(arg));
	r = redlock_check(c, name, &grant);
	return r ? r : once_write(c, name, old, ret_run);
}

/* Frees the lock. Keeps the last answer before that for the caller, unless the connection ends. */
static int release(struct redlock *c, const char *name, int r)
{
	struct redlock_line answer = c->answer;
	char code[sizeof(c->code)], message[sizeof(c->message)];
	bool answered = c->answered;
	int released;

	memcpy(code, c->code, sizeof(code));
	memcpy(message, c->message, sizeof(message));
	c->answer = (struct redlock_line){0};
	c->answered = false;
	released = redlock_unlock(c, name, 0);
	buffer_release(&c->answer.room);
	c->answer = answer;
	c->answered = answered;
	if (released < 0)
		return released;
	memcpy(c->code, code, sizeof(code));
	memcpy(c->message, message, sizeof(message));
	return r;
}

int redlock_once(struct redlock *c, const char *name, int64_t every_ms, int (*run)(void *arg), void *arg, struct redlock_run *ret_run)
{
	struct once_records records;
	struct redlock_grant grant;
	int r = redlock_lock(c, name, NULL, &grant);

	*ret_run = (struct redlock_run){0};
	if (r)
		return r == REDLOCK_BUSY ? 0 : r;
	r = once_read(c, name, &records);
	if (!r && records.last.next_ms <= 0) {
		r = run_and_record(c, name, every_ms, run, arg, &records, ret_run);
	} else if (!r) {
		*ret_run = records.last;
		ret_run->ran = false;
	}
	return release(c, name, r);
}

int redlock_once_status(struct redlock *c, const char *name, struct redlock_run *ret_run)
{
	struct once_records records;
	int r = once_read(c, name, &records);

	*ret_run = records.last;
	return r;
}
