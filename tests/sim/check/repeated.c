/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * S38: requests with count= whose answers are lost, and that are repeated. What the client thinks that it has, by the answers that it has read, is what it has:
 * no count, lock or permit too many. And the ordinary exclusion of what is locked so (S1, S5, S6). See client/repeater.h.
 */
#include "tests/sim/world/world.h"

/* A daemon whose last records are torn may have forgotten what it has answered. */
static bool journals_are_whole(const struct world *w)
{
	for (unsigned i = 0; i < w->plan->faults; i++)
		if (w->plan->fault[i].kind == FAULT_DAEMON_TORN)
			return false;
	return true;
}

static void fail(const struct sim_client *c, const char *what, int64_t said)
{
	const struct repeat_ask *a = &c->repeats.ask;

	if (journals_are_whole(c->world))
		checker_fail(c->world, INVARIANT_S38, -1, "client %u: %s, sent %u times: %s %lld", c->index, a->text, a->sent, what, (long long)said);
}

void check_repeat_refused(const struct sim_client *c, struct span code)
{
	char text[64];

	snprintf(text, sizeof(text), "the answer is %.*s, and the client has", (int)code.n, code.p);
	fail(c, text, c->repeats.hold[c->repeats.ask.owner][0].count);
}

void check_repeat_count(const struct sim_client *c, int64_t count)
{
	if (count != c->repeats.ask.count)
		fail(c, "the answer has count", count);
}

/* What is had once more is the same grant. */
void check_repeat_locked(const struct sim_client *c, int64_t name, int64_t count, int64_t fence)
{
	const struct repeat_ask *a = &c->repeats.ask;
	const struct repeat_hold *h = &c->repeats.hold[a->owner][name];

	check_repeat_count(c, count);
	if (h->count > 0 && !h->vague && (a->count > 1 || a->what == REPEAT_CHECK) && fence != h->fence)
		fail(c, "the answer has another fence", fence);
}

void check_repeat_rows(const struct sim_client *c)
{
	const struct repeating *r = &c->repeats;

	if (r->rows != r->ask.group)
		fail(c, "the answer has rows of", r->rows);
	for (int64_t name = 0; name < REPEAT_NAMES; name++)
		if (r->rows >> name & 1)
			check_repeat_count(c, r->row_count[name]);
}

/* The request that is not answered may have been carried out. */
void check_repeat_row(const struct sim_client *c, unsigned owner, int64_t name, int64_t count)
{
	const struct repeating *r = &c->repeats;
	const struct repeat_hold *h = &r->hold[owner][name];
	bool asked = r->ask.open && r->ask.owner == owner && r->ask.group >> name & 1 && r->ask.what != REPEAT_CHECK && r->ask.what != REPEAT_TOO_MANY;

	if (h->vague || count == h->count || (asked && count == r->ask.count))
		return;
	fail(c, "a row of RESUME has another count", count);
}

void check_repeat_permit_row(const struct sim_client *c, unsigned owner, int64_t permits)
{
	const struct repeating *r = &c->repeats;
	bool asked = r->ask.open && r->ask.owner == owner && r->ask.what == REPEAT_ACQUIRE;

	if (!r->vague[owner] && permits > r->permits[owner] && !(asked && permits <= r->ask.count))
		fail(c, "RESUME has a permit too many", permits);
}

void check_repeat_job_row(const struct sim_client *c, unsigned jobs)
{
	if (jobs > 1)
		fail(c, "RESUME has a job too many", jobs);
}

/* TAKE is answered first with what the session has, and the client has not heard of. */
void check_repeat_taken(const struct sim_client *c, struct span line, bool ok)
{
	const struct repeat_job *j = &c->repeats.job;
	char text[96];

	if (!j->unheard[0] || !instant_before(client_boot(c), j->unheard_until) || span_equal(line_word(line, 1), SPAN("ERR")) ||
	    (ok && span_equal(line_field(line, "job"), span_of(j->unheard))))
		return;
	snprintf(text, sizeof(text), "the session has job %s, and another answer comes", j->unheard);
	fail(c, text, ok);
}

/* The one before was answered, or has lost its place to this one. */
void check_repeat_alone(const struct sim_client *c)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q->ask == ASK_REPEAT && q->round == c->repeats.ask.number)
			fail(c, "an earlier one goes on, request", q->number);
}

/* What waits is replaced by the same request, as soon as that is read, unless its wait is over at the same moment. */
static void check_replaced(const struct request_sim *q, struct span line)
{
	const struct sim_client *c = q->conn->client;
	const struct request_sim *other;

	if (span_equal(line_word(line, 1), SPAN("TIMEOUT")) && instant_diff(client_boot(c), q->anchor) > c->repeats.ask.wait_ms * MSEC * 9 / 10)
		return;
	TAILQ_FOREACH(other, &q->conn->running, at_daemon)
		if (other->ask == ASK_REPEAT && other->round == q->round && other->number > q->number && c->repeats.ask.wait_ms > 0 &&
		    !span_equal(line_word(line, 1), SPAN("ERR")))
			fail(c, "it was sent again, and an earlier one is answered, request", q->number);
}

/* An answer LOST is kept as long as the request may be repeated after RESUME. */
void repeated_said(const struct request_sim *q, struct span line)
{
	struct sim_client *c = q->conn->client;
	struct repeat_ask *a = &c->repeats.ask;
	int64_t now = c->world->now;

	if (q->ask != ASK_REPEAT || q->round != a->number || span_equal(line_word(line, 1), SPAN("*")))
		return;
	check_replaced(q, line);
	if (a->count > 0 || (a->what != REPEAT_UNLOCK && a->what != REPEAT_RELEASE))
		return;
	if (span_equal(line_word(line, 2), SPAN("LOST")) && !a->lost_at) {
		a->lost_at = now;
		a->lost_run = c->daemon->run;
	} else if (span_equal(line_word(line, 1), SPAN("OK")) && a->lost_at && a->lost_run == c->daemon->run &&
		   now - a->lost_at < c->world->plan->grace_ms * MSEC / 2) {
		fail(c, "the answer is OK, and was LOST at", a->lost_at);
	}
}

/* --- exclusion ------------------------------------------------------------------------------------------------------- */

void check_repeat_belief(const struct sim_client *c, unsigned owner, int64_t name)
{
	const struct repeat_hold *h = &c->repeats.hold[owner][name], *other;
	struct world *w = c->world;

	for (unsigned i = 0; i < w->plan->clients && i < REPEATERS; i++)
		for (unsigned k = 0; k < REPEAT_OWNERS; k++) {
			other = &w->client[i].repeats.hold[k][name];
			if (other == h || h->until <= w->now || other->until <= w->now || (h->shared && other->shared))
				continue;
			checker_fail(w, h->shared || other->shared ? INVARIANT_S6 : INVARIANT_S1, -1,
				     "a%lld: client %u relies on fence %lld until %lld us, client %u in fence %lld until %lld us", (long long)name, c->index,
				     (long long)h->fence, (long long)h->until, i, (long long)other->fence, (long long)other->until);
		}
}

void check_repeat_permit(const struct sim_client *c, const struct repeat_permit *p)
{
	struct world *w = c->world;

	for (unsigned i = 0; i < w->plan->clients && i < REPEATERS; i++)
		for (unsigned k = 0; k < REPEAT_OWNERS * REPEAT_MOST; k++) {
			const struct repeat_permit *other = &w->client[i].repeats.permit[k / REPEAT_MOST][k % REPEAT_MOST];

			if (other != p && p->until > w->now && other->until > w->now && p->slot == other->slot)
				checker_fail(w, INVARIANT_S5, -1, "y0: client %u relies on fence %lld until %lld us, client %u in fence %lld of it to %lld",
					     c->index, (long long)p->fence, (long long)p->until, i, (long long)other->fence, (long long)other->until);
		}
}

/* S33 */
void check_repeat_job(const struct sim_client *c)
{
	const struct repeat_job *j = &c->repeats.job, *other;
	struct world *w = c->world;

	for (unsigned i = 0; i < w->plan->clients && i < REPEATERS; i++) {
		other = &w->client[i].repeats.job;
		if (other == j || j->until <= w->now || other->until <= w->now || strcmp(j->id, other->id) != 0)
			continue;
		checker_fail(w, INVARIANT_S33, -1, "client %u relies on job %s until %lld us, client %u until %lld us", c->index, j->id,
			     (long long)j->until, i, (long long)other->until);
	}
}
