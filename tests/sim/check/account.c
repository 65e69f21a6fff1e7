/* SPDX-License-Identifier: BSD-2-Clause */
/* What one owner of a session holds of one name, as the lines of the daemon say, and how the hold ends. */
#include "tests/sim/world/world.h"

/* Behind a RESUME that is not answered yet, the account of the previous connection counts. */
struct account *account_of(const struct request_sim *q)
{
	struct account *own = &q->conn->account[q->owner][q->name], *previous = own->count == 0 ? resumed_account(q->conn, q->owner, q->name) : NULL;

	return previous && (previous->count > 0 || previous->vague) ? previous : own;
}

/* After a torn journal only this reply shows whether and how often the name is held. Otherwise, what RESUME left undecided gets SAFE before any OK. */
void account_confirmed(const struct request_sim *q, struct account *a, int64_t count, int64_t fence)
{
	if (a->vague && (fence != a->fence || count >= 0)) {
		a->count = fence == a->fence ? count : 0;
		a->open = a->vague = false;
	} else if (a->open && !a->vague) {
		checker_fail(q->conn->world, INVARIANT_S14, q->name, "%s: OK for fence %lld, which RESUME left undecided, before SAFE",
			     name_of(q->name), (long long)fence);
	}
}

/* The session may have been granted the name while it had no connection, and has not asked about it yet. */
bool account_may_have_turn(const struct request_sim *q, const struct account *a)
{
	const struct lease *l = &q->conn->world->checker.lease[q->conn->daemon->index][q->name];

	return a->count == 0 && q->conn->resumed && l->unseen && !l->held;
}

/* A lease without renewal ends at the moment that its grant said. */
void account_begin(const struct request_sim *q, struct account *a)
{
	const struct sim_daemon *d = q->conn->daemon;

	a->ends_by = q->once && !resumed_is_behind(q) ? d : NULL;
	a->ends = recount_deadline(d, &q->conn->world->checker.lease[d->index][q->name]);
	a->most = q->ttl_ms ? instant_add(daemon_boot(d), q->ttl_ms * MSEC) : INSTANT_NEVER;
}

static struct lease *lease_of_account(const struct request_sim *q, int64_t name)
{
	return &q->conn->world->checker.lease[q->conn->daemon->index][name];
}

/* An untagged EXTEND may be carried out at any time before its reply: its session may not be reading. */
static bool extends_are_ordered(const struct request_sim *q)
{
	const struct request_sim *other;

	TAILQ_FOREACH(other, &q->conn->running, at_daemon)
	{
		if (other->ask == ASK_EXTEND && !other->tagged && other->name == q->name && other->owner == q->owner)
			return false;
	}
	return true;
}

void account_asked(const struct request_sim *q)
{
	struct account *a = account_of(q);
	struct lease *l = lease_of_account(q, q->name);

	a->ends_by = NULL;
	if (a->count == 0 || a->fence != l->fence)
		return;
	/* Not held: its connection is gone, and RESUME is not answered yet. */
	l->asked_us = !l->held || l->owner != q->owner || a->open || a->vague || !extends_are_ordered(q) ? 0 : q->ttl_ms * MSEC;
	l->asked_fence = l->fence;
	l->asked_step = q->conn->world->checker.step;
}

/* LIMIT: too many were under way, and this EXTEND changed nothing. */
void account_not_asked(const struct request_sim *q)
{
	lease_of_account(q, q->name)->asked_us = 0;
}

/* S9: no reply promises more than the last EXTEND asks the stores for: its renewal would take that back. */
static void account_bounded(const struct request_sim *q, int64_t name, struct span line)
{
	const struct lease *l = lease_of_account(q, name);
	int64_t valid = line_int(line, "valid_ms") * MSEC;

	if (l->asked_fence == line_int(line, "fence") && l->asked_us > 0 && q->begun_step >= l->asked_step && valid > l->asked_us * 99 / 100 - 2 * MSEC)
		checker_fail(q->conn->world, INVARIANT_S9, name, "%s: fence %lld was last asked for for %lld us, but a reply promises %lld us", name_of(name),
			     (long long)l->fence, (long long)l->asked_us, (long long)valid);
}

/* Drift of the clocks. Also, a vote that arrived after the grant, from a node that was asked later, may last longer than the others. */
static int64_t account_slack_us(const struct plan *p)
{
	return p->max_lease_us / 33 + 10 * MSEC + p->timeout_us;
}

void account_vouched(const struct request_sim *q, const struct account *a, int64_t name, struct span line)
{
	struct conn *c = q->conn;
	int64_t left = instant_diff(a->ends, daemon_boot(c->daemon)), valid = line_int(line, "valid_ms") * MSEC;
	int64_t most = instant_diff(a->most, daemon_boot(c->daemon)); /* a quorum was asked before the grant */

	account_bounded(q, name, line);
	if (a->ends_by == c->daemon && (valid > left + account_slack_us(c->world->plan) || valid > most + MSEC))
		checker_fail(c->world, INVARIANT_S9, name, "%s: fence %lld is not renewed and ends in %lld us, but a reply promises %lld us",
			     name_of(name), (long long)a->fence, (long long)left, (long long)valid);
}

void account_end(struct account *a)
{
	a->count = 0;
	a->open = a->vague = false;
}

/* The hold ended against its holder's will: it was in force for as long as it was promised. */
void account_lost(struct conn *c, int64_t name, int64_t fence)
{
	const struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->name == name && h->fence == fence && h->promised > 0)
			checker_delay(c->world, name, fence, h->promised);
	}
}

/* The daemon leaves the name alone until the holder's deadline: a silent holder may not have read the LOST. */
void account_excuse(struct conn *c, int64_t name)
{
	const struct lease *l = &c->world->checker.lease[c->daemon->index][name];
	int64_t left = instant_diff(recount_deadline(c->daemon, l), daemon_boot(c->daemon));

	if (l->held && l->conn == c && left > 0)
		checker_excuse(c->world, name, c->world->now + (left + c->world->plan->delay_us) * 103 / 100);
}

/* True time until which the hold was in force: until now, unless its daemon stood still and let it expire before. */
static int64_t in_force_until(const struct conn *c, int64_t name, int64_t fence)
{
	const struct lease *l = &c->world->checker.lease[c->daemon->index][name];
	struct instant end = l->grants > 0 ? recount_deadline(c->daemon, l) : l->previous;

	if (l->fence != fence || !instant_before(end, daemon_boot(c->daemon)))
		return c->world->now;
	return end.us == INSTANT_PAST.us ? 0 : host_true(&c->daemon->host, end);
}

/*
 * A daemon that is up releases the hold; one that is gone, or does not know yet whether it is held, leaves it to expire. Where the client itself has left, a
 * hold that is adopted after all ends with the grace of the session, and its lock-delay begins then if the promise lasts longer.
 */
void account_dropped(struct conn *c, int64_t name, const struct account *a)
{
	struct world *w = c->world;

	if (daemon_is_up(c->daemon) && a->open && c->left)
		checker_delay_from(w, name, a->fence, in_force_until(c, name, a->fence));
	else if (daemon_is_up(c->daemon) && !a->open)
		checker_delay(w, name, a->fence, in_force_until(c, name, a->fence));
	else
		account_lost(c, name, a->fence);
	checker_excuse(w, name, w->now + w->plan->delay_us * 51 / 50 + MSEC);
}


/* The daemon may read a request that has just begun before the reload or after it. */
void account_reloaded(struct sim_daemon *d)
{
	struct world *w = d->world;
	struct request_sim *q;

	for (int64_t name = 0; name < w->plan->names; name++)
		TAILQ_FOREACH(q, &w->checker.waiters[d->index][name], in_waiters)
			if (q->begun_step + 1 >= w->checker.step && !q->task->job.ttl_ms)
				q->ttl_ms = 0;
}
