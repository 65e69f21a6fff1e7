/* SPDX-License-Identifier: BSD-2-Clause */
/* How a client reads a line from its daemon. */
#include "tests/sim/world/world.h"

/* At any time, or late: in the last tenth of the ttl, but before LOST, which comes a twentieth before the end. */
static int64_t task_hurry_us(const struct task *t, int64_t left_us, bool late)
{
	int64_t ttl = job_ttl_ms(t) * MSEC, most = left_us - ttl / 20;

	if (!late || most <= 0)
		return stream_range(&t->client->stream, 0, left_us > 0 ? left_us : 0);
	return stream_range(&t->client->stream, most > ttl / 20 ? most - ttl / 20 : 0, most);
}

/* After RISK some clients release the lock before it ends. */
static void hold_release_early(const struct hold *h, int64_t left_us)
{
	struct world *w = h->client->world;
	bool late = stream_chance(&h->client->stream, 50);

	if (!stream_chance(&h->client->stream, 60))
		return;
	for (unsigned i = 0; i < w->tasks; i++) {
		struct task *t = &w->task[i];

		if (t->state != TASK_HOLDING || t->hold != h)
			continue;
		t->ticks = t->tick;
		world_at(w, &t->timer, AT_TASK, w->now + task_hurry_us(t, left_us, late));
	}
}

static void hear_push(struct conn *conn, struct span line)
{
	int64_t name = line_name(line);
	struct hold *h = name < 0 ? NULL : hold_find(conn, name, line_owner(line));
	struct span word = line_word(line, 1);

	if (!h || h->fence != line_int(line, "fence"))
		return;
	if (span_equal(word, SPAN("LOST"))) {
		h->lost = true;
		h->count = 0;
		hold_shorten(h, INSTANT_PAST); /* `promised` stays: until then nobody else may be granted the name */
	} else if (span_equal(word, SPAN("RISK"))) {
		hold_shorten(h, instant_add(client_boot(conn->client), line_int(line, "left_ms") * MSEC));
		hold_release_early(h, line_int(line, "left_ms") * MSEC);
	}
}

static struct request_sim *request_of(struct conn *conn, struct span line)
{
	struct request_sim *q;
	unsigned number = 0;
	bool tagged = line_tag(line, &number);

	TAILQ_FOREACH(q, &conn->open, at_client)
	{
		if (q->tagged == tagged && (!tagged || q->number == number))
			return q;
	}
	return NULL;
}

static void hear_locked(struct request_sim *q, struct span line, bool ok)
{
	struct hold *h = NULL;

	if (ok) {
		resume_lock_heard(q, line_int(line, "fence"), line_int(line, "count"));
		h = hold_granted(q, line_int(line, "fence"), line_int(line, "count"), line_int(line, "valid_ms"));
	}
	if (q->task)
		task_answered(q->task, q, h);
}

static void hear_checked(struct request_sim *q, struct span line, bool ok)
{
	struct hold *h = hold_find(q->conn, q->name, q->owner);
	bool ours = h && ok && h->fence == line_int(line, "fence");

	if (ours)
		hold_believe(h, q, line_int(line, "valid_ms"));
	else if (ok)
		resume_turn_heard(q, line_int(line, "fence"));
	if (q->task)
		task_checked(q->task, q, ours);
}

static void hear_unlocked(struct request_sim *q, struct span line, bool ok)
{
	struct hold *h = hold_find(q->conn, q->name, q->owner);

	if (!q->ours)
		return;
	if (h && q->fence && q->fence != h->fence)
		h = NULL; /* the UNLOCK named an earlier grant, and ends no hold */
	if (h && h->unlocking > 0)
		h->unlocking--;
	if (h)
		h->count = ok ? line_int(line, "count") : 0;
	if (q->task && q->task->state == TASK_ENDING)
		task_over(q->task);
}

void client_hear(struct sim_client *c, struct conn *conn, char *text)
{
	struct span line = span_of(text), word;
	struct request_sim *q;
	bool ok;

	if (span_starts(line, SPAN("! "))) {
		reader_pushed(c, line);
		permitter_pushed(c, line);
		worker_pushed(c, line);
		repeater_pushed(c, line);
		hear_push(conn, line);
		return;
	}
	q = request_of(conn, line);
	word = line_word(line, q && q->tagged ? 1 : 0);
	if (q && q->ask == ASK_RESUME && span_equal(word, SPAN("*"))) {
		resume_row_heard(c, q, line);
		permitter_row(c, q, line);
	}
	if (q && span_equal(word, SPAN("*")))
		gatherer_row(q, line), worker_row(c, q, line), repeater_row(c, q, line);
	if (!q || span_equal(word, SPAN("*")))
		return;
	TAILQ_REMOVE(&conn->open, q, at_client);
	ok = span_equal(word, SPAN("OK"));
	if (q->ask == ASK_LOCK)
		hear_locked(q, line, ok);
	else if (q->ask == ASK_CHECK || q->ask == ASK_EXTEND)
		hear_checked(q, line, ok);
	else if (q->ask == ASK_UNLOCK)
		hear_unlocked(q, line, ok);
	else if (q->ask == ASK_HELLO && ok)
		resume_hello_heard(c, q, line);
	else if (q->ask == ASK_RESUME)
		resume_heard(c, q, ok);
	else if (q->ask == ASK_READ)
		reader_heard(c, q, line, ok);
	else if (q->ask == ASK_PERMIT)
		permitter_heard(c, q, line, ok);
	else if (q->ask == ASK_NEST)
		nester_heard(c, q, ok);
	else if (q->ask == ASK_CHORE)
		worker_heard(c, q, line, ok);
	else if (q->ask == ASK_REPEAT)
		repeater_heard(c, q, line, ok);
}
