/* SPDX-License-Identifier: BSD-2-Clause */
/* See asking.h. */
#include "daemon/core/engine/asking.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/lock/lease.h"

/* Whether the release is put off at this store: it would only wait there. Not if a client waits for it, nor while the daemon stops: then there is no later. */
static bool release_is_for_later(const struct engine *e, const struct release *r, unsigned node)
{
	return flow_is_overdrawn(&e->members.node[node].flow) && !r->pending && !e->stopping;
}

/*
 * Whether a call may be sent to some store now. A busy one counts only if the stores without the value are no quorum: the name would be asked for in vain
 * then.
 */
static bool release_is_due(const struct engine *e, const struct release *r)
{
	bool blocks = nodeset_count(r->unconfirmed) > e->core->conf.nodes - engine_quorum(e), due = false;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		due |= release_may_ask(&e->releases, r, i) && (blocks || !release_is_for_later(e, r, i));
	return due;
}

static void release_send(struct engine *e, struct release *r)
{
	struct span text = SPAN("");

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		if (!release_may_ask(&e->releases, r, i))
			continue;
		if (release_is_for_later(e, r, i)) {
			release_put_off(r, i);
			continue;
		}
		release_undo_put_off(r, nodeset_of(i));
		text = text.n > 0 ? text : release_text(&e->releases, r);
		release_send_to(&e->releases, r, i, text);
	}
}

static struct instant release_retry_soonest(const struct engine *e)
{
	return instant_max(instant_add(e->core->now, RETRY_US), e->retry_next);
}

struct instant release_retry_at(struct engine *e)
{
	struct instant at = release_retry_soonest(e);

	e->retry_next = instant_add(at, RETRY_APART_US);
	return at;
}

/*
 * Stores of one release may be due at different moments. A timer that is set only moves to an earlier moment: each release_retry_at() delays all later
 * retries.
 */
static void release_try_again(struct engine *e, struct release *r, struct instant earliest)
{
	struct instant soonest = instant_max(earliest, release_retry_soonest(e));

	if (timer_is_set(&r->timer) && !instant_before(soonest, r->timer.at))
		return;
	heap_set(&e->core->timers, &r->timer, instant_min(r->until, instant_max(earliest, release_retry_at(e))));
}

/* Sets the timer to when its client must be answered. */
static void release_await(struct engine *e, struct release *r)
{
	if (!r->answer_by.us)
		r->answer_by = instant_add(e->core->now, e->core->conf.timeout_us);
	heap_set(&e->core->timers, &r->timer, instant_min(r->until, r->answer_by));
}

/* Only stores that were put off need a retry: an open call gets its answer, and a store that is away gets its call when it is back. */
void release_go_on(struct engine *e, struct release *r)
{
	release_send(e, r);
	if (r->pending)
		release_await(e, r);
	else if (release_is_left(&e->releases, r))
		release_try_again(e, r, INSTANT_PAST);
	else
		heap_set(&e->core->timers, &r->timer, r->until);
}

bool release_waits(struct engine *e, struct release *r)
{
	if (r->entry.waits)
		return true;
	if (admit(e, &r->entry, INSTANT_PAST, NULL))
		return false;
	r->calls.name->releases++;
	return true;
}

void release_admitted(struct engine *e, struct release *r)
{
	struct contender *k = contender_of_name(r->calls.name);

	if (--r->calls.name->releases == 0 && k->entry.parked)
		admission_queue(&e->admission, &k->entry, INSTANT_NEVER, TAILQ_FIRST(&k->waiters)->origin);
}

void release_waits_no_more(struct engine *e, struct release *r)
{
	if (!r->entry.waits)
		return;
	admission_leave(&e->admission, &r->entry);
	release_admitted(e, r);
}

/* Queues the release for admission, before each try: a store that comes back, or refuses all, may have many releases to get. False: it may begin now. */
static bool release_queue(struct engine *e, struct release *r)
{
	if (e->stopping || !release_is_due(e, r) || !release_waits(e, r))
		return false;
	heap_set(&e->core->timers, &r->timer, r->until);
	return true;
}

/* The same, but a release that a client waits for is admitted only once. */
static bool release_queue_again(struct engine *e, struct release *r)
{
	return !(r->pending && r->answer_by.us) && release_queue(e, r);
}

/* A renewal that hung may reach the key just before it ends, and keep it for one more TTL. */
struct instant release_until(const struct placed *p)
{
	bool may_hang = nodeset_any(nodeset_and(nodeset_or(p->unanswered, p->unknown), p->nodes));

	return may_hang ? instant_add(p->until, p->px_us + p->px_us / 50) : p->until;
}

static void release_start(struct engine *e, struct release *r, struct nodeset nodes, struct instant until)
{
	release_enlist(&e->releases, r, nodes, until);
	if (!release_queue(e, r))
		release_go_on(e, r);
}

void release_again(struct engine *e, struct release *r, struct nodeset nodes, struct instant until)
{
	release_start(e, r, nodes, until);
}

void release_begin(struct engine *e, struct lease *x, enum release_kind kind, int64_t px_us, struct pending *p)
{
	struct instant until = release_until(&x->placed);
	struct nodeset nodes = x->placed.nodes;
	struct release *r;

	if (nodeset_any(nodes)) {
		r = release_of_value(&e->releases, kind, x->name, &x->value);
		r->value_since = x->placed.since;
		r->delay_us = x->delay_us;
		r->px_us = px_us;
		r->pending = p;
		r->shared = x->shared;
		/* The key that is left has a fresh value, which no EXTEND under way names. */
		if (kind == RELEASE_LEAVE) {
			lock_value_make(&e->table, members_one_clock_us(&e->members, e->core->now), &r->left);
			value_mark_kept(&r->left);
			r->left.limit = x->value.limit; /* the rest of a semaphore's mark excludes what the mark excludes */
		}
		release_start(e, r, nodes, until);
	} else if (p) {
		notices_add(&e->notices, NOTICE_RELEASED, NULL, p, REFUSED_LOST);
	}
	x->placed.nodes = NODESET_NONE;
	adoption_over(x);
}

void release_round(struct engine *e, struct round *round)
{
	const struct placed *p = &round->placed;
	struct release *r;

	if (!nodeset_any(p->nodes))
		return;
	r = release_of_value(&e->releases, RELEASE_DELETE, round->calls.name, &round->value);
	r->value_since = p->since;
	r->shared = round->form == FORM_SHARED;
	release_start(e, r, p->nodes, release_until(p));
}

static void release_answer(struct engine *e, struct release *r, enum refusal why)
{
	notices_add(&e->notices, NOTICE_RELEASED, NULL, r->pending, why);
	r->pending = NULL;
}

/* UNLOCK sync=yes: OK when a quorum has freed the key; LOST when so many stores did not have it that the others are no quorum. */
static void release_decide(struct engine *e, struct release *r)
{
	unsigned quorum = engine_quorum(e);

	if (nodeset_count(r->done) >= quorum)
		release_answer(e, r, NOT_REFUSED);
	else if (nodeset_count(r->absent) > e->core->conf.nodes - quorum)
		release_answer(e, r, REFUSED_LOST);
}

static void release_finish(struct engine *e, struct release *r)
{
	if (r->pending)
		release_answer(e, r, r->entry.waits ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM);
	/* Only a keep= beyond the lock-delay can be cut short: the TTL of a key includes the lock-delay, and the time that a permit leaves it. */
	if (r->kind == RELEASE_LEAVE && r->px_us > r->delay_us && r->value.limit == 0 && nodeset_count(r->done) < engine_quorum(e) &&
	    core_may_log(e->core, BURST_LOST))
		core_log(e->core, LOG_WARN, "keep-lost", "name=%s stores=%u note=\"it may be granted before its time\"",
		         core_quoted(e->core, name_unescaped(name_text(r->calls.name))), nodeset_count(r->done));
	release_delist(&e->releases, r);
	release_waits_no_more(e, r);
	heap_cancel(&e->core->timers, &r->timer);
}

void release_answered(struct engine *e, struct release *r, const struct answer *a)
{
	if (!r->outstanding)
		return;
	release_note(&e->releases, r, a);
	if (r->pending)
		release_decide(e, r);
	if (!nodeset_any(r->unconfirmed))
		release_finish(e, r);
	else if (nodeset_has(r->unconfirmed, a->node) && !r->entry.waits)
		release_try_again(e, r, a->class == ANSWER_EXECUTED ? release_overtaken_until(&e->releases, r, a) : INSTANT_PAST);
}

void release_fired(struct engine *e, struct release *r)
{
	if (r->pending && r->answer_by.us && !instant_before(e->core->now, r->answer_by)) {
		calls_stall(&e->calls, &r->calls);
		release_answer(e, r, REFUSED_QUORUM);
	}
	if (!instant_before(e->core->now, r->until)) {
		release_finish(e, r);
		retire_release(e, r);
		return;
	}
	if (!release_queue_again(e, r))
		release_go_on(e, r);
}

static void release_resume(struct engine *e, struct release *r)
{
	if (release_queue_again(e, r))
		return;
	release_send(e, r);
	if (release_is_left(&e->releases, r))
		release_try_again(e, r, INSTANT_PAST);
}

bool release_resume_some(struct engine *e)
{
	struct release_list *list = &e->releases.outstanding;
	struct release *r;

	for (unsigned left = core_portion(e->core, BACK_A_STEP); left > 0; left--) {
		r = TAILQ_FIRST(list);
		if (!r || r->back == e->back.count)
			return true;
		r->back = e->back.count;
		TAILQ_REMOVE(list, r, in_list);
		TAILQ_INSERT_TAIL(list, r, in_list);
		release_resume(e, r);
	}
	return false;
}

bool release_waits_since(const struct engine *e, uint32_t count)
{
	const struct release *r = TAILQ_FIRST(&e->releases.outstanding);

	return r && (int32_t)(r->back - count) < 0;
}

void release_send_put_off(struct engine *e, const struct name *name)
{
	struct release *r;

	TAILQ_FOREACH(r, &e->releases.outstanding, in_list) {
		if (r->calls.name == name && nodeset_any(r->put_off))
			release_send(e, r);
	}
}

bool release_answer_syncs(struct engine *e)
{
	struct release *r;
	bool some = false;

	TAILQ_FOREACH(r, &e->releases.outstanding, in_list) {
		if (!r->pending)
			continue;
		release_answer(e, r, REFUSED_QUORUM);
		some = true;
	}
	return some;
}

void release_hurry_all(struct engine *e)
{
	struct release *r;

	TAILQ_FOREACH(r, &e->releases.outstanding, in_list) {
		release_waits_no_more(e, r);
		release_go_on(e, r);
	}
}
