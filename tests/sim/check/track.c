/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracks each session by the lines that its daemon reads and writes: which request each reply belongs to, what each owner holds, and how often. A reply that
 * does not fit is a violation.
 */
#include "tests/sim/world/world.h"

static struct world *world_of(const struct conn *c)
{
	return c->world;
}

static void lease_free(struct conn *c, int64_t name, int64_t owner)
{
	struct lease *l = &world_of(c)->checker.lease[c->daemon->index][name];

	if (!l->held || l->conn != c || l->owner != owner)
		return;
	l->held = false;
	l->ended_at = world_of(c)->now;
	told_freed(c, name);
}

static bool is_about_name(const struct request_sim *q)
{
	return q->ask == ASK_LOCK || q->ask == ASK_UNLOCK || q->ask == ASK_CHECK || q->ask == ASK_EXTEND;
}

/* UNLOCK sync=yes: the name is not held any more, although the reply comes later. */
static void sync_carried_out(struct request_sim *q)
{
	struct world *w = world_of(q->conn);
	struct account *a = account_of(q);
	int64_t fence = a->fence;

	TAILQ_REMOVE(&w->checker.syncs, q, in_syncs);
	q->sync = false;
	if (a->count != 1 || (q->fence && q->fence != fence))
		return;
	account_end(a);
	lease_free(q->conn, q->name, q->owner);
	q->ended = true;
	checker_undelay(w, q->name, fence);
	hold_released(w, q->name, fence);
}

void track_syncs(struct world *w, int64_t name)
{
	struct request_sim *q, *next;

	for (q = TAILQ_FIRST(&w->checker.syncs); q; q = next) {
		next = TAILQ_NEXT(q, in_syncs);
		if ((name < 0 || q->name == name) && !running_awaits(q))
			sync_carried_out(q);
	}
}

/* --- replies --------------------------------------------------------------------------------------------------------- */

static void on_locked(struct request_sim *q, struct span line)
{
	struct world *w = world_of(q->conn);
	struct account *a = account_of(q);
	int64_t count = line_int(line, "count"), fence = line_int(line, "fence");

	account_confirmed(q, a, count - 1, fence);
	if (count == 1 && a->count == 0) {
		check_grant(w, q->conn->daemon, q, fence);
		account_begin(q, a);
		told_granted(q);
	} else if (count != a->count + 1 || fence != a->fence)
		checker_fail(w, INVARIANT_S15, q->name, "%s: LOCK answered count=%lld fence=%lld after count=%lld fence=%lld",
			     name_of(q->name), (long long)count, (long long)fence, (long long)a->count, (long long)a->fence);
	a->count = count;
	a->fence = fence;
	recount_check(q->conn->daemon, q->name, line_int(line, "valid_ms"), INVARIANT_S9);
	account_vouched(q, a, q->name, line);
}

static void on_unlocked(struct request_sim *q, struct span line)
{
	struct world *w = world_of(q->conn);
	struct account *a = account_of(q);
	int64_t count = line_int(line, "count");
	bool open = a->open;

	if (q->ended)
		return;
	if (a->vague || (count == 0 && account_may_have_turn(q, a)))
		a->count = count + 1;
	if (a->count == 0)
		checker_fail(w, INVARIANT_S14, q->name, "%s: UNLOCK was OK for a lock that was not held any more", name_of(q->name));
	else if (count != a->count - 1 || (q->fence && q->fence != a->fence))
		checker_fail(w, INVARIANT_S15, q->name, "%s: UNLOCK answered count=%lld after %lld", name_of(q->name),
			     (long long)count, (long long)a->count);
	a->count = count;
	if (count > 0)
		return;
	account_end(a);
	checker_undelay(w, q->name, a->fence);
	hold_released(w, q->name, a->fence);
	if (!open && !q->late)
		recount_check(q->conn->daemon, q->name, -1, INVARIANT_S14);
	lease_free(q->conn, q->name, q->owner);
	w->checker.unlocked[q->name] = q->keep_ms == 0;
	w->checker.lease[q->conn->daemon->index][q->name].kept = q->keep_ms > 0;
	checker_excuse(w, q->name, w->now + q->keep_ms * MSEC * 51 / 50);
	if (q->keep_ms > 0)
		checker_keep(w, q, a->fence);
}

static void on_confirmed(struct request_sim *q, struct span line)
{
	struct account *a = account_of(q);

	account_confirmed(q, a, line_int(line, "count"), line_int(line, "fence"));
	if (account_may_have_turn(q, a) && line_int(line, "fence") > a->fence)
		resumed_turn(q, a, line_int(line, "fence"));
	if (a->count == 0 || line_int(line, "fence") != a->fence)
		checker_fail(world_of(q->conn), INVARIANT_S14, q->name, "%s: OK for fence %lld, which is not held any more",
			     name_of(q->name), (long long)line_int(line, "fence"));
	else if (q->ask == ASK_CHECK && line_int(line, "count") != a->count)
		checker_fail(world_of(q->conn), INVARIANT_S15, q->name, "%s: CHECK answered count=%lld after %lld",
			     name_of(q->name), (long long)line_int(line, "count"), (long long)a->count);
	recount_check(q->conn->daemon, q->name, line_int(line, "valid_ms"), INVARIANT_S9);
	account_vouched(q, a, q->name, line);
}

/* QUIT: all that the session holds is free. */
static void on_quit(struct conn *c)
{
	for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++) {
			if (c->account[owner][name].count > 0)
				checker_undelay(world_of(c), name, c->account[owner][name].fence);
			c->account[owner][name].count = 0;
			lease_free(c, name, owner);
		}
}

static void on_ok(struct request_sim *q, struct span line)
{
	if (q->beat_us) {
		q->conn->beat_us = q->beat_us;
		q->conn->active_at = world_of(q->conn)->now; /* the heartbeat counts from here, however long the HELLO was queued */
	}
	switch (q->ask) {
	case ASK_LOCK:
		named_granted(q, line);
		on_locked(q, line);
		break;
	case ASK_UNLOCK:
		on_unlocked(q, line);
		break;
	case ASK_CHECK:
	case ASK_EXTEND:
		on_confirmed(q, line);
		break;
	case ASK_HELLO:
		resumed_hello(q, line);
		break;
	case ASK_RESUME:
		resumed_ok(q, line);
		break;
	case ASK_QUIT:
		on_quit(q->conn);
		break;
	default:
		broken_told(q, line);
	}
}

static void on_error(struct request_sim *q, struct span code)
{
	struct world *w = world_of(q->conn);
	struct account *a = account_of(q);
	bool lost = span_equal(code, SPAN("LOST")), notheld = span_equal(code, SPAN("NOTHELD")) && (!q->fence || q->fence == a->fence);

	if (q->ask == ASK_EXTEND && (span_equal(code, SPAN("LIMIT")) || span_equal(code, SPAN("DENIED"))))
		account_not_asked(q);
	if (notheld && a->vague)
		account_end(a);
	if (lost && a->vague && (!q->fence || q->fence == a->fence))
		account_end(a);
	if (q->ended || q->ask == ASK_LOCK || a->count == 0)
		return;
	if (notheld)
		checker_fail(w, INVARIANT_S15, q->name, "%s: NOTHELD, but count=%lld was answered", name_of(q->name),
			     (long long)a->count);
	if (lost)
		checker_fail(w, INVARIANT_L5, q->name, "%s: ERR LOST, but no LOST was pushed", name_of(q->name));
}

static void on_reply(struct conn *c, struct span line)
{
	struct request_sim *q = running_of_line(c, line);
	unsigned at = q && q->tagged ? 1 : 0;
	struct span word = line_word(line, at);

	if (!q && span_starts(line, SPAN("ERR LIMIT mistakes=")))
		return; /* it says why the daemon hangs up, behind the reply to the last mistake */
	if (!q) {
		checker_fail(world_of(c), INVARIANT_S21, -1, "client %u: a reply that belongs to no request: %.*s", c->client->index,
			     (int)line.n, line.p);
		return;
	}
	if (span_equal(word, SPAN("*"))) {
		if (q->ask == ASK_RESUME)
			resumed_row(q, line);
		gathered_row(q, line);
		list_heard(q, line, true);
		named_row(q, line);
		chores_row(q, line);
		told_row(q, line);
		return;
	}
	if (q->refused && span_equal(word, SPAN("OK")))
		checker_fail(world_of(c), INVARIANT_S6, -1, "client %u: a reader was granted an end or a lock-delay of its own: %.*s", c->client->index,
			     (int)line.n, line.p);
	storm_said(c, line);
	nests_said(q, line);
	metered_said(q, line, word);
	chores_said(q, line, word);
	gathered_said(q, line, word);
	told_said(q, line);
	repeated_said(q, line);
	ruled_said(q, line, word);
	if (span_equal(word, SPAN("OK")))
		readers_said(q, line), readers_released(q, line), job_locks_said(q, line), permitted_said(q, line);
	else if (span_equal(word, SPAN("ERR")))
		readers_refused(q, line_word(line, at + 1));
	list_heard(q, line, false);
	named_said(q, line, span_equal(word, SPAN("OK")));
	if (q->ask != ASK_RESUME)
		resumed_losses_told(c);
	if (q->ask == ASK_UNLOCK && q->sync)
		track_syncs(world_of(c), q->name); /* with those that began before it, in order */
	if (span_equal(word, SPAN("OK")))
		on_ok(q, line);
	else if (is_about_name(q) && span_equal(word, SPAN("ERR")))
		on_error(q, line_word(line, at + 1));
	if (q->ask == ASK_RESUME && span_equal(word, SPAN("ERR")))
		resumed_refused(q, line_word(line, at + 1));
	if (span_equal(line_word(line, at + 1), SPAN("INTERNAL")))
		checker_fail(world_of(c), INVARIANT_S21, -1, "client %u: %.*s", c->client->index, (int)line.n, line.p);
	running_done(q);
}

/* A renewal that falls due at half of the lease waits for a call that is under way, and then takes as long again. */
static bool outlasts_calls(const struct plan *p, int64_t lease_us)
{
	/* Calls that a store may have to answer at a time: what the windows hold, or, where no window is drawn, one for each name. */
	int64_t calls = p->window ? (p->window + 1) * p->daemons : p->storm + p->names + 1;

	return lease_us / 2 > 2 * (2 * (p->latency_us + p->jitter_us) + calls * p->service_us);
}

/*
 * L9: nothing is wrong except that the stores are overloaded. redlockd(8) says that this costs nobody a lease, unless a lease is as short as a few calls. A
 * drawn window is excepted: more may be held than it lets through.
 */
static bool nothing_is_wrong(const struct world *w, const struct lease *l)
{
	bool narrow = w->plan->window > 0 && w->plan->service_us == 0;

	return !narrow && w->plan->faults == 0 && !w->strange && w->stage < STAGE_FINALE && outlasts_calls(w->plan, l->least_us);
}

static void on_push(struct conn *c, struct span line)
{
	int64_t name = line_name(line), owner = line_owner(line), fence = line_int(line, "fence");
	struct account *a, *previous;
	bool well;

	storm_said(c, line);
	readers_lost(c, line);
	job_locks_pushed(c, line);
	watched_contended(c, line);
	nests_pushed(c, line);
	if (name < 0)
		return;
	a = &c->account[owner][name];
	previous = a->fence == fence ? NULL : resumed_account(c, owner, name);
	a = previous && previous->fence == fence ? previous : a;
	notice_pushed(c, name, line);
	if (span_equal(line_word(line, 1), SPAN("SAFE")) && a->open && a->fence == fence) {
		a->open = false;
		check_resumed(c, name, owner, fence);
	}
	if (!span_equal(line_word(line, 1), SPAN("LOST")))
		return;
	resumed_lost(c, owner, name, fence);
	if (a->fence != fence && (c->resumed || resumed_account(c, owner, name)))
		return; /* the hold came and went while the session had no connection; or a previous run pushed this LOST, but may not have been heard */
	if (a->fence != fence)
		checker_fail(world_of(c), INVARIANT_S15, name, "%s: LOST for a grant that the session does not hold", name_of(name));
	account_end(a);
	account_lost(c, name, fence);
	account_excuse(c, name);
	well = nothing_is_wrong(world_of(c), &world_of(c)->checker.lease[c->daemon->index][name]);
	lease_free(c, name, owner);
	if ((well && span_equal(line_field(line, "reason"), SPAN("quorum"))) ||
	    (world_of(c)->stage == STAGE_FINALE && owner == OWNERS_MAX - 1 && !c->resumed && !conn_quit_is_queued(c) &&
	     !span_equal(line_field(line, "reason"), SPAN("broken")))) /* a BREAK of before may still be queued */
		checker_fail(world_of(c), INVARIANT_L9, name, "client %u: %.*s", c->client->index, (int)line.n, line.p);
}

void track_line(struct conn *c, struct span line)
{
	if (c->taken)
		return;
	while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
		line.n--;
	if (span_starts(line, SPAN("! EVENT")))
		watched_event(c, line);
	else if (span_starts(line, SPAN("! ")))
		on_push(c, line);
	else
		on_reply(c, line);
}

/* --- ends ------------------------------------------------------------------------------------------------------------ */

void track_conn_over(struct conn *c)
{
	storm_conn_over(c), readers_conn_over(c);
	nests_conn_over(c);
	if (!c->taken)
		resumed_conn_over(c);
	if (c->secret[0])
		detached_begin(c);
	running_over(c);
	for (int64_t owner = 0; owner < OWNERS_MAX; owner++)
		for (int64_t name = 0; name < NAMES_MAX; name++) {
			if (c->account[owner][name].count > 0)
				account_dropped(c, name, &c->account[owner][name]);
			if (!c->secret[0])
				c->account[owner][name].count = 0;
			c->account[owner][name].open = false; /* the next RESUME answers with a row, or leaves it undecided again */
			lease_free(c, name, owner);
		}
}
