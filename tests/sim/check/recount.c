/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the votes of each lease a second time, from calls and answers at the interface of the service, with arithmetic of its own. What a daemon grants,
 * promises or pushes is compared with that count.
 */
#include "tests/sim/world/world.h"

#include <stdlib.h>

#define LEAD_US (4 * MSEC) /* LOST is pushed at least so long before the deadline */
#define PORTIONS_MOST 4000 /* steps in which timers are set anew, in a world with the smallest portions */
#define SOON_US MSEC       /* or so soon after the deadline came nearer */

/* --- values ---------------------------------------------------------------------------------------------------------- */

/* The serial of a value "<16 hex>.<host>:<serial>:<32 hex>". */
static uint64_t serial_of(struct span value)
{
	const char *colon = value.n > 0 ? memchr(value.p, ':', value.n) : NULL;
	uint64_t serial = 0;

	if (!colon)
		return 0;
	for (const char *p = colon + 1; p < value.p + value.n && *p >= '0' && *p <= '9'; p++)
		serial = serial * 10 + (uint64_t)(*p - '0');
	return serial;
}

#define RUN_SHIFT 40 /* a run of a daemon begins with the numbers behind those of the run before: see daemon/core/resume/restore.c */

/* Was it made by this run of the daemon? */
static bool is_of_run(const struct sim_daemon *d, uint64_t serial)
{
	const struct serial_flags *b = &d->world->checker.serials[d->index];

	return b->known && serial >> RUN_SHIFT == b->run;
}

static bool is_of_daemon(const struct sim_daemon *d, struct span value)
{
	return span_starts(value, span_of(service_daemon_id(d->service)));
}

/* Does the value belong to this run of the daemon? */
static bool is_own(const struct sim_daemon *d, struct span value)
{
	return is_of_daemon(d, value) && is_of_run(d, serial_of(value));
}

static uint8_t *serial_flag(struct serial_flags *b, uint64_t serial)
{
	size_t old = b->cap;

	serial &= (UINT64_C(1) << RUN_SHIFT) - 1;
	if (serial >= b->cap) {
		b->cap = 2 * serial + 64;
		b->released = realloc(b->released, b->cap);
		if (!b->released)
			abort();
		memset(b->released + old, 0, b->cap - old);
	}
	return &b->released[serial];
}

bool recount_is_released(const struct sim_daemon *d, uint64_t serial)
{
	return is_of_run(d, serial) && *serial_flag(&d->world->checker.serials[d->index], serial);
}

static void numbers_begin_anew(struct sim_daemon *d)
{
	struct serial_flags *serials = &d->world->checker.serials[d->index];

	serials->known = false;
	if (serials->cap)
		memset(serials->released, 0, serials->cap);
}

/* A run of the daemon begins: its service has no values and no leases. */
void recount_run_begins(struct sim_daemon *d)
{
	struct checker *k = &d->world->checker;

	numbers_begin_anew(d);
	memset(k->lease[d->index], 0, sizeof(k->lease[d->index]));
	known_node_run_begins(d);
	released_run_begins(d);
	notice_awake(d);
	tickets_run_begins(d);
	named_run_begins(d);
}

/* It renews all leases, and hands none of them on before others have come. */
void recount_goes_on(struct sim_daemon *d)
{
	numbers_begin_anew(d);
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		struct lease *l = &d->world->checker.lease[d->index][name];

		carried_begin(d, l);
		l->renewing = 0;
		l->adopted = true;
		l->risked = true; /* whether RISK was told is not known */
	}
	known_node_run_begins(d);
	notice_awake(d);
	named_run_begins(d);
}

void recount_run_is_named(struct sim_daemon *d)
{
	memcpy(d->id, service_daemon_id(d->service), 16);
	d->id[16] = '\0';
}

/* --- votes ----------------------------------------------------------------------------------------------------------- */

/* t_send + LEASE * (1 - rho) - delta, with rho = 1 % and delta = 3 ms */
struct instant recount_vote(const struct world *w, const struct call *call, struct instant sent)
{
	int64_t lease = call->px_ms * MSEC - delay_of_call(w, call);

	return instant_add(sent, lease * 99 / 100 - 3 * MSEC);
}

/* The deadline, by counting: the latest end that a quorum of votes reaches. */
struct instant recount_deadline(const struct sim_daemon *d, const struct lease *l)
{
	unsigned nodes = (unsigned)d->world->plan->nodes; /* a node that is not one of its own never votes */
	struct instant best = INSTANT_PAST;

	for (unsigned i = 0; i < nodes; i++) {
		unsigned reach = 0;

		for (unsigned j = 0; j < nodes; j++)
			reach += l->until[j].us >= l->until[i].us;
		if (2 * reach > d->conf.nodes)
			best = instant_max(best, l->until[i]);
	}
	return best;
}

/* Does a quorum of votes reach that moment? The result equals a comparison with the deadline, in one pass. */
static bool quorum_reaches(const struct sim_daemon *d, const struct lease *l, struct instant at)
{
	unsigned nodes = (unsigned)d->world->plan->nodes, reach = 0;

	for (unsigned i = 0; i < nodes; i++)
		reach += l->until[i].us >= at.us;
	return 2 * reach > d->conf.nodes;
}

/* L8: a daemon releases the votes of a failed round at a node before it asks that node again; it does not ask a node that is too busy for the release. */
static void failed_round_keep(struct world *w, struct sim_daemon *d, struct lease *l)
{
	bool some = false;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		some |= l->grants == 0 && l->base[i] > 0 && d->link[i].up;
	if (!some)
		return;
	l->failed = l->serial;
	for (unsigned i = 0; i < w->plan->nodes; i++)
		l->leftover[i] = l->base[i] > 0 && d->link[i].up && !(l->released >> i & 1) ? l->until[i] : INSTANT_PAST;
}

static void failed_round_check(struct world *w, struct sim_daemon *d, int64_t name, const struct lease *l, unsigned node)
{
	if (instant_before(daemon_boot(d), l->leftover[node]))
		checker_fail(w, INVARIANT_L8, name,
			     "%s: daemon %u asks node %u again, and has not released its vote of a failed round", name_of(name), d->index, node);
}

static void lease_begin(struct world *w, struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct lease *l = &w->checker.lease[d->index][name];
	struct span value = call->kind == CALL_EXTEND ? call->new_value : call->value;
	int64_t floor = floor_of_lease(w, call, name);

	/*
	 * Not under X: the service may know of a clock that jumped, and lose the lease earlier. most_us - least_us: after an EXTEND to less, a vote for more
	 * counts for less.
	 */
	if (w->class == CLASS_T && l->held && !l->conn->going && l->over_step != w->checker.step &&
	    instant_before(daemon_boot(d), instant_add(recount_deadline(d, l), l->least_us - l->most_us)))
		checker_fail(w, INVARIANT_S15, name, "%s: daemon %u acquires what its client %u holds", name_of(name), d->index,
			     l->conn->client->index);
	if (l->grants > 0)
		l->previous = recount_deadline(d, l);
	if (!l->unseen)
		failed_round_keep(w, d, l);
	l->unseen = w->checker.detached_until[d->index][name] > w->now;
	memset(l->base, 0, sizeof(l->base));
	memset(l->reach, 0, sizeof(l->reach));
	l->grants = 0;
	l->least_us = l->most_us = 0;
	l->released = l->renewing = l->renewed = 0;
	l->adopted = l->kept = l->evicted = l->broken = false;
	l->carried = (struct carried){0};
	l->wanted.us = 0;
	l->serial = serial_of(value);
	l->value = hash_bytes(value.p, value.n);
	l->floor = floor;
	floor_keep(w, name, l->value, floor);
	l->delay_us = delay_of_call(w, call);
	for (unsigned i = 0; i < NODES_MAX; i++)
		l->until[i] = INSTANT_PAST;
}

/* S15: keep= leaves the key behind. */
static void kept_check(struct sim_daemon *d, const struct call *call, int64_t name)
{
	const struct lease *l = &d->world->checker.lease[d->index][name];
	uint64_t serial = serial_of(call->value);

	if (l->kept && serial == l->serial)
		checker_fail(d->world, INVARIANT_S15, name, "%s: daemon %u deletes a key that UNLOCK keep= left", name_of(name), d->index);
}

/* S8: a daemon uses only its own values. */
static void values_check(struct sim_daemon *d, const struct call *call, int64_t name)
{
	if (!is_of_daemon(d, call->value))
		checker_fail(d->world, INVARIANT_S8, name, "%s: daemon %u uses the value %.*s of another daemon", name_of(name), d->index,
			     (int)call->value.n, call->value.p);
}

static void value_is_released(struct sim_daemon *d, const struct call *call, int64_t name, uint64_t serial)
{
	struct checker *k = &d->world->checker;
	struct lease *l = &k->lease[d->index][name];

	if (is_own(d, call->value))
		*serial_flag(&k->serials[d->index], serial) = 1;
	released_note(d, call->value);
	if (l->serial == serial)
		l->released |= (uint16_t)(1u << call->node);
	else if (l->failed == serial)
		l->leftover[call->node] = INSTANT_PAST;
}

/* A lock-delay or keep= leaves the value behind: it is released, and its key stays. */
static void value_is_left_behind(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct checker *k = &d->world->checker;
	struct lease *l = &k->lease[d->index][name];
	uint64_t serial = serial_of(call->value);

	if (is_own(d, call->value))
		*serial_flag(&k->serials[d->index], serial) = 1;
	if (l->serial == serial)
		l->released |= (uint16_t)(1u << call->node);
}

/* A call acquires or extends: what the lease was asked for so far. */
static void lease_asked(struct world *w, struct sim_daemon *d, const struct call *call, struct lease *l)
{
	int64_t lease_us = call->px_ms * MSEC - delay_of_call(w, call);

	l->most_us = lease_us > l->most_us ? lease_us : l->most_us;
	l->least_us = l->least_us == 0 || lease_us < l->least_us ? lease_us : l->least_us;
	if (call->kind != CALL_EXTEND)
		return;
	l->renewed |= (uint16_t)(1u << call->node);
	l->until[call->node] = instant_min(l->until[call->node], recount_vote(w, call, daemon_boot(d)));
}

/* An ACQUIRE, or an EXTEND: of a value of this run, or one that adopts a value of a previous run. */
static void value_used(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct world *w = d->world;
	struct lease *l = &w->checker.lease[d->index][name];
	uint64_t serial = serial_of(call->kind == CALL_EXTEND ? call->new_value : call->value);
	bool adopts = call->kind == CALL_EXTEND && !call->exact && !is_own(d, call->value);

	if (recount_is_released(d, serial))
		checker_fail(w, INVARIANT_S11, name, "%s: daemon %u uses the value with serial %llu, which it had released", name_of(name), d->index,
			     (unsigned long long)serial);
	if (call->kind == CALL_ACQUIRE)
		tickets_call(d, call, name);
	if ((call->kind == CALL_ACQUIRE || adopts) && l->serial != serial) {
		lease_begin(w, d, call, name);
		w->tally.adopted += adopts;
	}
	if (call->kind == CALL_ACQUIRE)
		failed_round_check(w, d, name, l, call->node);
	l->adopted |= adopts;
	if (adopts)
		released_adopted(d, call, name);
	if (l->serial != serial)
		return;
	known_node_call(d, call, name, l);
	lease_asked(w, d, call, l);
}

/* S9: what nobody renews ends by itself, unless its holder asks for more. */
static void check_unrenewed(const struct sim_daemon *d, int64_t name)
{
	const struct lease *l = &d->world->checker.lease[d->index][name];
	const struct account *a = l->held ? &l->conn->account[l->owner][name] : NULL;

	if (a && a->count > 0 && a->ends_by == d && a->fence == l->fence && !l->adopted)
		checker_fail(d->world, INVARIANT_S9, name, "%s: daemon %u renews fence %lld, which client %u does not want to be renewed", name_of(name),
			     d->index, (long long)l->fence, l->conn->client->index);
}

void recount_call(struct sim_daemon *d, const struct call *call)
{
	int64_t name = name_number(call->name);

	if (call->kind == CALL_ACQUIRE) {
		d->world->checker.serials[d->index].run = serial_of(call->value) >> RUN_SHIFT;
		d->world->checker.serials[d->index].known = true;
	}
	readers_call(d, call);
	if (call->kind == CALL_PROBE)
		known_node_probe(d, call->node);
	if (call->kind == CALL_PROBE || call->kind == CALL_MARK || call->kind == CALL_LOOK || call->kind == CALL_BREAK || name < 0)
		return;
	if (call->kind == CALL_WITHDRAW) {
		tickets_withdrawn(d, call, name);
		return;
	}
	values_check(d, call, name);
	delays_call(d, call);
	if (call->kind == CALL_RELEASE) {
		kept_check(d, call, name);
		value_is_released(d, call, name, serial_of(call->value));
		return;
	}
	if (call->kind == CALL_EXTEND && !call->exact)
		check_unrenewed(d, name);
	if (call->kind == CALL_EXTEND && call->exact)
		value_is_left_behind(d, call, name);
	value_used(d, call, name);
}

static void tokens_reserved(struct lease *l, const struct call *call, const struct answer *a)
{
	if (a->code == 'G') {
		l->base[call->node] = a->fence;
		l->reach[call->node] = a->fence + call->range;
	} else if ((a->code == 'E' || a->code == 'A') && l->reach[call->node] < call->fence) {
		l->reach[call->node] = call->fence;
	}
}

void recount_answer(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted)
{
	struct world *w = d->world;
	int64_t name = name_number(call->name);
	struct instant *until, vote = recount_vote(w, call, emitted);
	uint16_t bit = (uint16_t)(1u << call->node);
	struct lease *l;

	known_node_answer(d, call, a, emitted);
	if (name < 0 || (call->kind != CALL_ACQUIRE && call->kind != CALL_EXTEND))
		return;
	l = &w->checker.lease[d->index][name];
	if (!quorum_reaches(d, l, instant_add(daemon_boot(d), 1)))
		l->over_step = w->checker.step + 1;
	until = &l->until[call->node];
	if (l->serial != serial_of(call->kind == CALL_EXTEND ? call->new_value : call->value))
		return;
	if (call->kind == CALL_EXTEND && !call->exact)
		l->renewing &= (uint16_t)~bit;
	if (a->class != ANSWER_EXECUTED)
		return;
	eviction_answer(d, l, call, a, emitted);
	l->broken |= a->code == 'X';
	carried_answer(d, l, call, a);
	if (a->code == 'G' || l->grants == 0)
		tokens_reserved(l, call, a);
	if (a->code == 'G' && !(l->renewed & bit))
		*until = instant_max(*until, vote);
	if (a->code == 'G')
		tickets_granted(d, name, call->node);
	if (a->code == 'E' || a->code == 'A')
		*until = vote;
	else if (call->kind == CALL_EXTEND && (a->code == 'B' || a->code == 'X' || a->code == 'K' || a->code == 'M'))
		known_node_vote_falls(d, l, call->node, INSTANT_PAST);
}

static void promise_check(struct sim_daemon *d, int64_t name, struct instant deadline, int64_t valid_ms, enum invariant what)
{
	struct world *w = d->world;
	int64_t left = instant_diff(deadline, daemon_boot(d));

	if (left <= 0)
		checker_fail(w, what, name, "%s: daemon %u says that it is held, but too few votes stand", name_of(name), d->index);
	else if (valid_ms == 0)
		checker_fail(w, what, name, "%s: daemon %u says that it is held, for 0 ms", name_of(name), d->index);
	else if (valid_ms > 0 && valid_ms * MSEC > left)
		checker_fail(w, what, name, "%s: daemon %u says that it is held for %lld ms, but its votes cover %lld us", name_of(name),
			     d->index, (long long)valid_ms, (long long)left);
}

void recount_check(struct sim_daemon *d, int64_t name, int64_t valid_ms, enum invariant what)
{
	promise_check(d, name, recount_deadline(d, &d->world->checker.lease[d->index][name]), valid_ms, what);
}

void recount_check_risk(struct sim_daemon *d, int64_t name, int64_t left_ms)
{
	struct lease known = d->world->checker.lease[d->index][name];

	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		known.until[i] = known_node_vote(d, &d->world->checker.lease[d->index][name], i);
	promise_check(d, name, recount_deadline(d, &known), left_ms, INVARIANT_S9);
}

/* L5: LOST is pushed 5 ms before the deadline, or as soon as a vote falls that brings the deadline nearer than that. */
static void deadline_check(struct sim_daemon *d, int64_t name, struct lease *l)
{
	struct world *w = d->world;
	struct instant soon = instant_add(daemon_boot(d), LEAD_US);
	bool due = l->held && !l->conn->going && !quorum_reaches(d, l, soon) && !carried_unsurely(d, l, soon);

	if (!due)
		l->overdue_since = l->portions = 0;
	else if (l->overdue_since == 0 || (service_sets_timers(d->service) && ++l->portions < PORTIONS_MOST))
		l->overdue_since = w->now;
	else if (w->now - l->overdue_since > SOON_US)
		checker_fail(w, INVARIANT_L5, name, "%s: daemon %u has not pushed LOST to client %u", name_of(name), d->index, l->conn->client->index);
}

/* After each step of the daemon. */
void recount_step(struct sim_daemon *d)
{
	struct world *w = d->world;

	tickets_step(d);
	readers_step(d);
	notice_step(d);
	nests_step(d->world);
	released_step(d);

	for (int64_t name = 0; name < w->plan->names; name++) {
		struct lease *l = &w->checker.lease[d->index][name];

		deadline_check(d, name, l);
		eviction_step(d, l, name);
	}
}
