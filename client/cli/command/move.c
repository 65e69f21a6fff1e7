/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * move: moves jobs from the queues of one daemon to another daemon, which has other stores. A job is stored there before it is removed here. If a
 * move stops between the two, both have the job, with the same id. The next move leaves one of them.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/locks_held.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SOON_MS 10000 /* a job that is due later than this is moved without taking it; others might take a job that is due sooner */

/* A job, as LIST shows it. */
struct job_row {
	char id[REDLOCK_JOB_BYTES], lock[REDLOCK_NAME_BYTES], payload[PAYLOAD_MAX];
	size_t payload_n;
	int64_t due_ms; /* -1: a session has taken it, or it has failed for good */
	bool dead;
	bool whole; /* everything about it is known, also its lock */
};

struct move {
	struct redlock *from, *to;
	const char *queue;
	uint64_t moved;
	uint64_t left, dead; /* in this queue: how many stay, and how many of these have failed for good */
	bool some_left;
	struct job_row row;
};

/*
 * A move between daemons with the same stores would remove each job that it has just stored. Such daemons exclude each other from a lock, and others
 * do not, so a lock is the test.
 */
static int stores_differ(struct move *m, const char *prefix)
{
	char name[REDLOCK_NAME_BYTES];
	struct redlock_grant grant;
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random) ||
	    snprintf(name, sizeof(name), "%smove-%016" PRIx64, prefix, random) >= (int)sizeof(name)) {
		complain("the prefix is too long");
		return EX_USAGE;
	}
	r = exit_of(m->from, redlock_lock(m->from, name, NULL, &grant));
	if (r)
		return r;
	r = redlock_lock(m->to, name, NULL, &grant);
	if (r == REDLOCK_BUSY)
		complain("both daemons have the same stores: the jobs are there already");
	return r == REDLOCK_BUSY ? EX_UNAVAILABLE : exit_of(m->to, r);
}

/* --- jobs that are due --- */

/* The job is stored at the other daemon. Here another session may have taken it meanwhile. */
static int job_is_removed(struct move *m, const char *id, int outcome)
{
	const char *code = outcome == REDLOCK_REFUSED ? redlock_code(m->from) : "";
	char queue[SHOWN_BYTES], job[SHOWN_BYTES];

	m->moved++;
	if (strcmp(code, "LOST") != 0 && strcmp(code, "NOTHELD") != 0 && strcmp(code, "NOTFOUND") != 0)
		return exit_of(m->from, outcome);
	complain("job %s of %s was taken by somebody else as it was moved: it may run twice", shown(id, job), shown(m->queue, queue));
	return 0;
}

static int job_move(struct move *m, const struct redlock_job *job)
{
	const struct redlock_deferral as = {.size = sizeof(as), .id = job->id, .lock = job->lock[0] ? job->lock : NULL};
	int r = exit_of(m->to, redlock_defer(m->to, m->queue, (struct redlock_bytes){job->payload, job->payload_n}, &as, NULL));

	if (!r)
		return job_is_removed(m, job->id, redlock_done(m->from, m->queue, job->id));
	/* Gives it back as if it had never been taken. If that fails, the end of the session gives it back. */
	(void)!taken_job_retry(m->from, m->queue, (struct redlock_bytes){job->id, strlen(job->id)}, " failed=no");
	return r;
}

static int due_move(struct move *m)
{
	struct redlock_job job;
	int r, end = 0;

	while (!end && (r = redlock_take(m->from, m->queue, NULL, &job)) == REDLOCK_OK) {
		end = job_move(m, &job);
		free(job.payload);
	}
	return end || r == REDLOCK_BUSY ? end : exit_of(m->from, r);
}

/* --- jobs that are not due --- */

/* Copies a field of at least one byte, without a NUL. False: it has none, or does not fit. */
static bool field_keep(const struct redlock_line *row, const char *field, char *out, size_t size)
{
	struct span text = field_of(row, field);

	if (text.n == 0 || text.n >= size)
		return false;
	memcpy(out, text.p, text.n);
	out[text.n] = '\0';
	return strlen(out) == text.n;
}

static void job_keep(void *arg, const struct redlock_line *line)
{
	struct span payload = field_of(line, "payload");
	struct job_row *row = arg;

	row->lock[0] = '\0';
	row->due_ms = redlock_line_number(line, "due_ms", -1);
	row->dead = field_is(line, "state", "dead");
	row->whole = field_keep(line, "job", row->id, sizeof(row->id)) && payload.p && payload.n <= sizeof(row->payload) &&
	             (!field_of(line, "name").p || field_keep(line, "name", row->lock, sizeof(row->lock)));
	row->payload_n = row->whole ? payload.n : 0;
	if (row->payload_n > 0)
		memcpy(row->payload, payload.p, payload.n);
}

static int later_move(struct move *m)
{
	const struct job_row *row = &m->row;
	const struct redlock_deferral as = {.size = sizeof(as), .delay_ms = row->due_ms, .id = row->id, .lock = row->lock[0] ? row->lock : NULL};
	int r = exit_of(m->to, redlock_defer(m->to, m->queue, (struct redlock_bytes){row->payload, row->payload_n}, &as, NULL));

	return r ? r : job_is_removed(m, row->id, redlock_drop(m->from, m->queue, row->id));
}

/* Moves the jobs that are due much later. A page continues by position, so after a job was removed, the same position has the next job. */
static int rest_move(struct move *m)
{
	struct redlock_page page = {.size = sizeof(page), .prefix = m->queue, .limit = 1}, next;
	bool more = true;
	int r = 0;

	m->left = m->dead = 0;
	while (!r && more) {
		next = page;
		r = exit_of(m->from, redlock_list(m->from, REDLOCK_JOBS, &next, job_keep, &m->row));
		if (r || redlock_line_number(redlock_answer(m->from), "n", 0) == 0)
			break;
		if (m->row.whole && m->row.due_ms > SOON_MS) {
			r = later_move(m);
			continue;
		}
		m->left++;
		m->dead += m->row.dead;
		more = next.more != 0;
		page = next;
	}
	return r;
}

/* --- queues --- */

static int queue_move(struct move *m)
{
	char queue[SHOWN_BYTES], dead[64] = "";
	int r = due_move(m);

	if (!r)
		r = rest_move(m);
	if (r || m->left == 0)
		return r;
	m->some_left = true;
	if (m->dead > 0)
		snprintf(dead, sizeof(dead), ", and %" PRIu64 " of these %s failed for good", m->dead, m->dead == 1 ? "has" : "have");
	complain("of %s %" PRIu64 " %s%s", shown(m->queue, queue), m->left, m->left == 1 ? "job stays" : "jobs stay", dead);
	return 0;
}

/* Moves one queue after the other, in the order of their names. A queue that was moved leaves the list. */
static int queues_move(struct move *m, const char *prefix)
{
	struct redlock_page page = {.size = sizeof(page), .prefix = prefix, .limit = 1};
	bool last = false;
	int r = 0;

	while (!r && !last) {
		r = exit_of(m->from, redlock_list(m->from, REDLOCK_QUEUES, &page, NULL, NULL));
		if (r || redlock_line_number(redlock_answer(m->from), "n", 0) == 0)
			break;
		last = page.more == 0;
		if (redlock_line_number(redlock_answer(m->from), "missing", 0) > 0) {
			complain("not all stores of that daemon can be asked for their queues");
			return EX_UNAVAILABLE;
		}
		page.after[page.after_n] = '\0';
		m->queue = page.after;
		r = queue_move(m);
	}
	return r;
}

static int move(struct move *m, const char *prefix)
{
	int r = stores_differ(m, prefix);

	if (r)
		return r;
	r = queues_move(m, prefix);
	printf("%" PRIu64 " %s moved\n", m->moved, m->moved == 1 ? "job is" : "jobs are");
	return r ? r : m->some_left ? EXIT_NO : EXIT_SUCCESS;
}

int move_main(const struct invocation *in)
{
	static struct move m;
	int r = EX_UNAVAILABLE;

	m.from = dial(in->from);
	m.to = m.from ? dial(in->addr) : NULL;
	if (m.to)
		r = move(&m, in->operand ? in->operand : "");
	redlock_close(m.from);
	redlock_close(m.to);
	return r;
}
