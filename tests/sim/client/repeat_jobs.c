/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See repeater.h: jobs of the queue z0. A client has one at a time. It takes no other before it has given that back, so a session never has two; what RESUME
 * shows, and the client has not heard of, is what its next TAKE is answered with.
 */
#include "tests/sim/world/world.h"

static const struct host *job_host(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

static void repeat_job_ends(struct sim_client *c)
{
	struct repeat_job *j = &c->repeats.job;

	j->id[0] = '\0';
	j->until = 0;
	j->deadline = INSTANT_PAST;
}

static bool is_job(const char *id, struct span line)
{
	return id[0] && span_equal(line_field(line, "job"), span_of(id));
}

static void id_keep(char *id, size_t size, struct span line)
{
	struct span word = line_field(line, "job");

	snprintf(id, size, "%.*s", (int)word.n, word.p);
}

/* --- what it asks ---------------------------------------------------------------------------------------------------- */

void repeat_ask_job(struct sim_client *c)
{
	struct repeating *r = &c->repeats;
	struct repeat_job *j = &r->job;
	bool has = j->id[0] != '\0', takes = !has && stream_chance(&r->stream, 60), checks = has && stream_chance(&r->stream, 40);
	struct repeat_ask *a = repeat_new(c, checks ? REPEAT_KNOWN : has ? REPEAT_DONE : takes ? REPEAT_TAKE : REPEAT_DEFER, 0, 0);

	if (checks) {
		snprintf(a->text, sizeof(a->text), "CHECK z0 job=%s", j->id);
	} else if (has) {
		snprintf(a->text, sizeof(a->text), "DONE %s", j->id);
		j->until = 0;
		j->deadline = INSTANT_PAST;
	} else if (takes) {
		a->wait_ms = stream_chance(&r->stream, 40) ? 0 : stream_range(&r->stream, 100, 3000);
		snprintf(a->text, sizeof(a->text), "TAKE z0 wait=%lldms", (long long)a->wait_ms);
	} else {
		snprintf(a->text, sizeof(a->text), "DEFER z0 work id=z%un%lld", c->index, (long long)a->number);
	}
}

/* Its bound is that of other requests about jobs. */
void repeat_job_bound(const struct repeat_ask *a, struct request_sim *q)
{
	q->of_job = a->what >= REPEAT_DEFER;
	q->chore = a->what == REPEAT_TAKE ? CHORE_TAKE : a->what == REPEAT_DONE ? CHORE_DONE : CHORE_CHECK;
}

/* --- what it hears --------------------------------------------------------------------------------------------------- */

static void believed(struct sim_client *c, const struct request_sim *q, int64_t valid_ms)
{
	struct repeat_job *j = &c->repeats.job;

	if (q->conn->left || valid_ms < 0)
		return;
	j->deadline = instant_add(q->anchor, valid_ms * MSEC);
	j->until = host_true(job_host(c), j->deadline);
	check_repeat_job(c);
}

/* A row of RESUME. */
void repeat_job_row(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct repeat_job *j = &c->repeats.job;

	if (!span_equal(line_field(line, "queue"), SPAN("z0")))
		return;
	check_repeat_job_row(c, ++j->rows);
	if (is_job(j->id, line))
		return;
	id_keep(j->unheard, sizeof(j->unheard), line);
	j->unheard_until = instant_add(q->anchor, line_int(line, "valid_ms") * MSEC);
}

void repeat_job_pushed(struct sim_client *c, struct span line)
{
	struct repeat_job *j = &c->repeats.job;

	if (is_job(j->unheard, line))
		j->unheard[0] = '\0';
	if (!is_job(j->id, line))
		return;
	if (span_equal(line_word(line, 1), SPAN("LOST")))
		repeat_job_ends(c);
	else if (span_equal(line_word(line, 1), SPAN("RISK")))
		j->until = 0, j->deadline = INSTANT_PAST; /* the client stops, though it could go on for a while */
}

static void taken(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	struct repeat_job *j = &c->repeats.job;

	check_repeat_taken(c, line, ok);
	j->unheard[0] = '\0';
	if (!ok)
		return;
	id_keep(j->id, sizeof(j->id), line);
	believed(c, q, line_int(line, "valid_ms"));
}

void repeat_job_answered(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	switch (c->repeats.ask.what) {
	case REPEAT_TAKE:
		taken(c, q, line, ok);
		break;
	case REPEAT_KNOWN:
		ok ? believed(c, q, line_int(line, "valid_ms")) : repeat_job_ends(c);
		break;
	case REPEAT_DONE:
		if (!span_equal(line_word(line, 2), SPAN("LIMIT"))) /* a request that is refused for its number changes nothing */
			repeat_job_ends(c);
		break;
	default:
		break;
	}
}
