/* SPDX-License-Identifier: BSD-2-Clause */
/* RISK is told in time when a renewal was missed (L14), and a session that falls silent is cut off (L13). */
#include "tests/sim/world/world.h"

#define CHECK_EVERY_US (20 * MSEC)
#define PAUSE_US       (200 * MSEC) /* a daemon forgives a heartbeat that was missed while it stood still, or just after */

void notice_awake(struct sim_daemon *d)
{
	d->world->checker.awake_since[d->index] = d->world->now;
}

/* Its QUIT is read and waits behind other requests: no further heartbeat will come. */
bool conn_quit_is_queued(const struct conn *c)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->queued, at_daemon)
	{
		if (q->ask == ASK_QUIT)
			return true;
	}
	return false;
}

static void silence_check(struct sim_daemon *d, const struct conn *c)
{
	const struct world *w = d->world;
	bool listens = c->beat_us > 0 && !c->going && !c->taken && c->reading && !c->eof && !c->half_closed && !c->eof_known;

	if (listens && !conn_quit_is_queued(c) && w->now - later(c->active_at, w->checker.awake_since[d->index]) > c->beat_us * 51 / 50 + PAUSE_US)
		checker_fail(d->world, INVARIANT_L13, -1,
			     "client %u, which promised daemon %u a line every %lld us, has been silent since %lld us and is not cut off",
			     c->client->index, d->index, (long long)c->beat_us, (long long)c->active_at);
}

/*
 * A renewal is due after a third of the lease, and is missed when its command times out. For a renewal that waits for admission, RISK is due when a third of
 * the lease is left.
 */
static void risk_check(struct sim_daemon *d, int64_t name, struct lease *l)
{
	struct world *w = d->world;
	bool awaited = l->held && l->renews && !l->risked && !l->conn->going;
	int64_t left = awaited ? instant_diff(recount_deadline(d, l), daemon_boot(d)) : INT64_MAX;
	int64_t wait = 2 * w->plan->timeout_us + l->least_us / 20 + 50 * MSEC;

	if (left >= l->least_us / 3 - w->plan->timeout_us)
		l->low_since = 0;
	else if (l->low_since == 0)
		l->low_since = w->now;
	else if (w->now - later(l->low_since, w->checker.awake_since[d->index]) > wait)
		checker_fail(w, INVARIANT_L14, name, "%s: only %lld us of the lease of client %u are left since %lld us, and daemon %u has not pushed RISK",
			     name_of(name), (long long)left, l->conn->client->index, (long long)l->low_since, d->index);
}

/* --- when they are checked -------------------------------------------------------------------------------------------- */

void notice_step(struct sim_daemon *d)
{
	struct world *w = d->world;
	int64_t *at = &w->checker.notice_at[d->index];

	if (w->now < *at)
		return;
	*at = w->now + CHECK_EVERY_US;
	for (unsigned i = 0; w->plan->heartbeat_ms > 0 && i < d->slots; i++)
		if (d->slot[i])
			silence_check(d, d->slot[i]);
	for (int64_t name = 0; name < w->plan->names; name++)
		risk_check(d, name, &w->checker.lease[d->index][name]);
}

void notice_granted(const struct request_sim *q, struct lease *l, int64_t fence)
{
	l->renews = q->renews && !resumed_is_behind(q); /* the grant may belong to an earlier request with other terms */
	l->risked = false;
	l->low_since = 0;
	l->asked_us = q->conn->resumed || l->unseen ? 0 : q->ttl_ms * MSEC;
	l->asked_fence = fence;
	l->asked_step = q->begun_step;
}

void notice_pushed(struct conn *c, int64_t name, struct span line)
{
	struct lease *l = &c->world->checker.lease[c->daemon->index][name];
	bool risk = span_equal(line_word(line, 1), SPAN("RISK")), safe = span_equal(line_word(line, 1), SPAN("SAFE"));

	if (risk)
		recount_check_risk(c->daemon, name, line_int(line, "left_ms"));
	else if (safe)
		recount_check(c->daemon, name, line_int(line, "valid_ms"), INVARIANT_S9);
	if (l->conn == c && (risk || safe))
		l->risked = risk;
}
