/* SPDX-License-Identifier: BSD-2-Clause */
/* What one owner of a session has of one name, by the lines of its daemon: which connection accounts for it, and how it ends. */
#include "tests/sim/world/world.h"

/* Behind a RESUME that is under way the books are those of the connection before. */
struct account *account_of(const struct request_sim *q)
{
	struct account *own = &q->conn->account[q->owner][q->name], *former = own->count == 0 ? resume_account(q->conn, q->owner, q->name) : NULL;

	return former && (former->count > 0 || former->vague) ? former : own;
}

/* Where the journal was torn, whether and how often it is held is only known from here. Else SAFE comes before any OK about what RESUME left undecided. */
void account_confirmed(const struct request_sim *q, struct account *a, int64_t count, int64_t fence)
{
	if (a->vague && (fence != a->fence || count >= 0)) {
		a->count = fence == a->fence ? count : 0;
		a->open = a->vague = false;
	} else if (a->open && !a->vague) {
		checker_fail(q->conn->world, INVARIANT_S14, q->name, "%s: OK about fence %lld, of which RESUME said nothing, before SAFE",
			     name_of(q->name), (long long)fence);
	}
}

/* A turn came while its session had no connection, and nobody asked for it yet: what is said of that name is about it. */
bool account_may_have_turn(const struct request_sim *q, const struct account *a)
{
	const struct lease *l = &q->conn->world->checker.lease[q->conn->daemon->index][q->name];

	return a->count == 0 && q->conn->resumed && l->unseen && !l->held;
}

/* What nobody renews ends when it was said to. */
void account_begin(const struct request_sim *q, struct account *a)
{
	const struct sim_daemon *d = q->conn->daemon;

	a->ends_by = q->once && !resume_is_behind(q) ? d : NULL;
	a->ends = witness_deadline(d, &q->conn->world->checker.lease[d->index][q->name]);
}

static struct lease *lease_of_account(const struct request_sim *q, int64_t name)
{
	return &q->conn->world->checker.lease[q->conn->daemon->index][name];
}

/* One without a tag is carried out at any time until it is answered: its session may not read what it is told. */
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
	if (!l->held || l->owner != q->owner || a->count == 0 || a->fence != l->fence)
		return;
	l->asked_us = a->open || a->vague || !extends_are_ordered(q) ? 0 : q->ttl_ms * MSEC;
	l->asked_fence = l->fence;
	l->asked_step = q->conn->world->checker.step;
}

/* Too many of them were under way: it has changed nothing. */
void account_not_asked(const struct request_sim *q)
{
	lease_of_account(q, q->name)->asked_us = 0;
}

/* More than the stores will be asked for next would be taken back by the asking. */
static void account_bounded(const struct request_sim *q, int64_t name, struct span line)
{
	const struct lease *l = lease_of_account(q, name);
	int64_t valid = line_int(line, "valid_ms") * MSEC;

	if (l->asked_fence == line_int(line, "fence") && l->asked_us > 0 && q->begun_step >= l->asked_step && valid > l->asked_us * 99 / 100 - 2 * MSEC)
		checker_fail(q->conn->world, INVARIANT_S9, name, "%s: fence %lld was asked for for %lld us, and is vouched for for %lld us", name_of(name),
			     (long long)l->fence, (long long)l->asked_us, (long long)valid);
}

/* What clocks may drift. And a vote that came behind the grant, of a node that was asked later than the leading one, may last longer than those it had. */
static int64_t account_slack_us(const struct plan *p)
{
	return p->max_lease_us / 33 + 10 * MSEC + p->timeout_us;
}

void account_vouched(const struct request_sim *q, const struct account *a, int64_t name, struct span line)
{
	struct conn *c = q->conn;
	int64_t left = instant_diff(a->ends, daemon_boot(c->daemon)), valid = line_int(line, "valid_ms") * MSEC;

	account_bounded(q, name, line);
	if (a->ends_by == c->daemon && valid > left + account_slack_us(c->world->plan))
		checker_fail(c->world, INVARIANT_S9, name, "%s: fence %lld, which nobody renews, was to end in %lld us, and is vouched for for %lld us",
			     name_of(name), (long long)a->fence, (long long)left, (long long)valid);
}

void account_end(struct account *a)
{
	a->count = 0;
	a->open = a->vague = false;
}

/* Without its holder's will: what was promised of it was in force. */
void account_lost(struct conn *c, int64_t name, int64_t fence)
{
	const struct hold *h;

	TAILQ_FOREACH(h, &c->world->holds, in_world)
	{
		if (h->name == name && h->fence == fence && h->promised > 0)
			checker_delay(c->world, name, fence, h->promised);
	}
}

/* The name is left alone until the deadline that its holder may believe in: it has been silent, and may not have heard the LOST. */
void account_excuse(struct conn *c, int64_t name)
{
	const struct lease *l = &c->world->checker.lease[c->daemon->index][name];
	int64_t left = instant_diff(witness_deadline(c->daemon, l), daemon_boot(c->daemon));

	if (l->held && l->conn == c && left > 0)
		checker_excuse(c->world, name, c->world->now + (left + c->world->plan->delay_us) * 103 / 100);
}

/* True time until which it was in force: until now, unless its daemon, which stood still, let it run out before. */
static int64_t in_force_until(const struct conn *c, int64_t name, int64_t fence)
{
	const struct lease *l = &c->world->checker.lease[c->daemon->index][name];
	struct instant end = l->grants > 0 ? witness_deadline(c->daemon, l) : l->former;

	if (l->fence != fence || !instant_before(end, daemon_boot(c->daemon)))
		return c->world->now;
	return end.us == INSTANT_PAST.us ? 0 : host_true(&c->daemon->host, end);
}

/* Its daemon sees to what it holds, or is no more, or does not know yet whether it is held. */
void account_dropped(struct conn *c, int64_t name, const struct account *a)
{
	struct world *w = c->world;

	if (daemon_is_up(c->daemon) && !a->open)
		checker_delay(w, name, a->fence, in_force_until(c, name, a->fence));
	else
		account_lost(c, name, a->fence);
	checker_excuse(w, name, w->now + w->plan->delay_us * 51 / 50 + MSEC);
}

