/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds that ask for a name; split votes: the leading store, and the pause. */
#include "daemon/core/engine/asking.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/member/health.h"
#include "daemon/core/round/round.h"

static void acquire_start(struct engine *e, struct contender *k, enum cause why);

/*
 * Split votes. Contenders that split one parallel round would split the next one as well. So for a while each asks one store first, the same on all daemons,
 * and the others only if that store grants: one contender wins there, and then everywhere. That costs one more round trip. Daemons that see different stores
 * alive may ask different stores first: that is a parallel round again, after one more pause of random length. If a value stays at the first store for longer
 * than a rival's round lasts, it is no rival's: the round asks the next store instead.
 * See ALGORITHMS.md, Split votes.
 */

#define LEADS_MOST 8
#define LEADS_US SEC
#define RTT_LEAST_US 200
#define DOUBLINGS_MOST 6
#define LASTING_US (100 * MSEC)
#define PAUSE_LONG_US (300 * MSEC) /* plus a few round trips: the key that splits the votes may end any moment, and no message reports that */
#define PAUSE_MOST_US SEC
#define BLOCKING_MOST_MS  (UINT32_C(30) * 24 * 3600 * 1000) /* a month: longer times do not count, because since_ms wraps */
#define RIVAL_LEAST_US (20 * MSEC) /* as long as a second round */

/* A round begins: returns the store that it asks first; -1: all at once. Uses up one of the rounds that ask one store first. */
static int split_take_leader(const struct engine *e, struct contender *k)
{
	if (k->leads == 0 || !instant_before(e->core->now, k->lead_until))
		return -1;
	k->leads--;
	return members_leader(&e->members, name_text(k->name), nodeset_all(NODES_MAX));
}

static uint32_t split_now_ms(const struct engine *e)
{
	return (uint32_t)(e->core->now.us / MSEC);
}

static uint32_t split_value(const struct round *r, unsigned node)
{
	return nodeset_has(r->taken, node) ? (uint32_t)r->taken_by[node] | 1 : 0;
}

void split_remember(const struct engine *e, struct contender *k, const struct round *r)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		uint32_t value = split_value(r, i);

		if (!nodeset_has(nodeset_or(r->granted, r->refused), i))
			continue;
		if (k->blocking[i].value != value)
			k->blocking[i].since_ms = split_now_ms(e);
		else if (split_now_ms(e) - k->blocking[i].since_ms > BLOCKING_MOST_MS)
			k->blocking[i].since_ms = split_now_ms(e) - BLOCKING_MOST_MS;
		k->blocking[i].value = value;
	}
}

/* For how long a quorum has had this value, as far as is known; -1: it has another one, or none. */
static int64_t split_lasted_ms(const struct engine *e, const struct contender *k, uint32_t value)
{
	int64_t lasted[NODES_MAX];

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		lasted[i] = k->blocking[i].value == value ? (int64_t)(split_now_ms(e) - k->blocking[i].since_ms) : -1;
	return quorum_at_least(lasted, e->core->conf.nodes);
}

int64_t split_seen_ms(const struct engine *e, const struct contender *k)
{
	int64_t most = -1;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		int64_t lasted = k->blocking[i].value ? split_lasted_ms(e, k, k->blocking[i].value) : -1;

		most = lasted > most ? lasted : most;
	}
	return most;
}

/*
 * Whether the value has been at this store for longer than a rival's round lasts. Then somebody holds the name, or the daemon that placed the value has died
 * or does not reach the store.
 */
static bool split_has_lasted(const struct engine *e, const struct round *r, unsigned node)
{
	const struct contender *k = contender_of_name(r->calls.name);
	int64_t rival = 2 * members_answer_us(&e->members);

	return nodeset_has(r->taken, node) && k->blocking[node].value == split_value(r, node) &&
	       (split_now_ms(e) - k->blocking[node].since_ms) * MSEC > (rival > RIVAL_LEAST_US ? rival : RIVAL_LEAST_US);
}

/*
 * This store, which the round asked first, has refused: returns the store that it asks next, also alone; -1: none, the value at the leading store is a
 * rival's.
 */
static int split_next_leader(const struct engine *e, const struct round *r, unsigned node)
{
	unsigned left = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		left += nodeset_has(r->not_asked, i) && member_may_grant(&e->members.node[i]);
	if (left < engine_quorum(e) || !split_has_lasted(e, r, node))
		return -1;
	return members_leader(&e->members, name_text(r->calls.name), r->not_asked);
}

/* The stores with the value that splits the votes round after round. */
static struct nodeset split_nodes(const struct engine *e, const struct round *r)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(r->taken, i) && r->taken_by[i] == contender_of_name(r->calls.name)->split_by)
			nodeset_add(&nodes, i);
	return nodes;
}

/*
 * A quorum has answered, and the votes are split. True: by rivals, one of whom may win. False: by the key of a dead daemon.
 *
 * Rivals use a new value each round. As long as a quorum has their values or ours, one contender can win without the stores that have not answered.
 */
static bool split_has_rivals(const struct engine *e, const struct round *r)
{
	const struct contender *k = contender_of_name(r->calls.name);
	struct nodeset free = nodeset_without(round_informative(r), split_nodes(e, r));

	return k->same_splits < (k->patient ? RACE_MOST : SPLIT_TRIES - 1) || nodeset_count(free) >= engine_quorum(e);
}

/* How long a round waits for a slow store that can help against such a key. */
static int64_t split_lasting_us(const struct engine *e)
{
	int64_t answer_us = members_answer_us(&e->members);

	return answer_us > LASTING_US ? answer_us : LASTING_US;
}

/* A round that asked the leading node alone does not know the values at the others. */
static void split_count(const struct engine *e, struct contender *k, const struct round *r, bool leader_taken)
{
	unsigned nodes = e->core->conf.nodes;

	if (nodeset_any(split_nodes(e, r))) {
		k->same_splits++;
		return;
	}
	if (leader_taken)
		return;
	k->same_splits = 1;
	/* It is not known which value is the dead daemon's. Each round suspects the value at another store, until one stays. */
	for (unsigned i = k->lost_rounds; i < k->lost_rounds + nodes; i++)
		if (nodeset_has(r->taken, i % nodes)) {
			k->split_by = r->taken_by[i % nodes];
			return;
		}
}

/* A random time from half to one and a half of us, so that daemons that collided once do not collide again. */
static int64_t split_pause_us(const struct engine *e, int64_t us)
{
	return us / 2 + (int64_t)rng_below(e->rng, (uint64_t)us + 1);
}

/* All stores that refused have reported since then that the lock was freed: no split, but a release that was on its way. */
static bool split_was_freed(const struct contender *k, const struct round *r)
{
	return nodeset_any(r->taken) && !nodeset_any(nodeset_without(r->taken, k->woken));
}

int64_t split_note(struct engine *e, struct contender *k, const struct round *r, bool leader_taken)
{
	int64_t rtt = members_rtt_us(&e->members), most = PAUSE_LONG_US + 4 * rtt, pause;
	unsigned n = k->lost_rounds < DOUBLINGS_MOST ? k->lost_rounds : DOUBLINGS_MOST;

	metric_add(&e->core->metrics, METRIC_SPLITS, 1);
	split_count(e, k, r, leader_taken);
	if (split_was_freed(k, r))
		return split_pause_us(e, rtt < RTT_LEAST_US ? RTT_LEAST_US : rtt);
	if (!leader_taken) {
		k->leads = LEADS_MOST;
		k->lead_until = instant_add(e->core->now, LEADS_US);
	}
	pause = ++k->lost_rounds > RACE_MOST ? LASTING_US : (rtt < RTT_LEAST_US ? RTT_LEAST_US : rtt) << n;
	most = most < PAUSE_MOST_US ? most : PAUSE_MOST_US;
	return split_pause_us(e, pause < most ? pause : most);
}

/* Not at once: a stream of requests would split the votes without end. */
void split_hurry(struct engine *e, struct contender *k)
{
	int64_t rtt = members_rtt_us(&e->members);
	struct instant soon = instant_add(e->core->now, split_pause_us(e, rtt < RTT_LEAST_US ? RTT_LEAST_US : rtt));

	if (instant_before(soon, k->timer.at))
		heap_set(&e->core->timers, &k->timer, soon);
}

/*
 * The acquire round. All nodes that may grant are asked in parallel; a quorum that grants with one and the same base is a grant after one round trip. If the
 * bases differ, a second round raises the fence to the largest of them, at the nodes that granted and nowhere else: only those count. A value that leads to
 * no grant is released wherever it may be. See ALGORITHMS.md, Rounds; Fencing tokens.
 */

#define STRAGGLER_LEAST_US MSEC
#define RAISE_LEAST_US (20 * MSEC)
#define NODES_ALL nodeset_all(NODES_MAX)

/* The quorum needs stores that were too busy to get a release of this name, so that it answers soon; and one of them has room now. */
static bool acquire_needs_put_off(const struct engine *e, const struct contender *k)
{
	bool room = false;
	unsigned ready = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (nodeset_has(k->name->put_off, i))
			room |= m->connected && !flow_is_overdrawn(&m->flow);
		else
			ready += member_is_prompt(&e->members, m);
	}
	return room && ready < engine_quorum(e);
}

/*
 * Asks those of these stores that may grant and have room. The others are asked when they have room, if the round still needs them. A store that may have our
 * dead value would only refuse: it gets the release first.
 */
static void acquire_ask(struct engine *e, struct round *r, struct nodeset nodes, int64_t proposal)
{
	struct contender *k = contender_of_name(r->calls.name);
	int64_t reserve = e->core->conf.shared ? members_reserve_us(&e->members) : 0; /* the memory store has one daemon: there is nobody to reserve for */
	struct span value = value_in_text(e->core, &r->value), ticket;

	ticket_take(e, k); /* the first patient waiter may have come after the leading node was asked */
	ticket = ticket_text(e, k);
	r->left_out = NODESET_NONE;
	if (nodeset_any(k->name->put_off) && acquire_needs_put_off(e, k))
		release_send_put_off(e, k->name);
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (!nodeset_has(nodes, i) || !member_may_grant(m))
			continue;
		if (nodeset_has(k->name->put_off, i) || flow_is_overdrawn(&m->flow)) {
			nodeset_add(&r->left_out, i);
			continue;
		}
		ask_acquire(&e->calls, r, i, value, proposal, ticket, reserve);
		if (ticket.n > 0)
			nodeset_add(&k->ticket_at, i);
	}
}

/*
 * Sets the round's timer to the end of the round, or to an earlier moment: when the leading store should have answered, or when stores that were left out may
 * have room. The longer the round lasts, the longer the pause between two looks at those.
 */
static void acquire_await(struct engine *e, struct round *r)
{
	struct instant at = r->until;
	int64_t answer_us, waited;

	if (nodeset_any(nodeset_or(r->not_asked, r->left_out))) {
		answer_us = members_answer_us(&e->members);
		waited = nodeset_any(r->not_asked) ? 0 : instant_diff(e->core->now, r->calls.begun);
		at = instant_min(at, instant_add(e->core->now, waited > answer_us ? waited : answer_us));
	}
	heap_set(&e->core->timers, &r->timer, at);
}

/* The name waits for admission. The timer bounds how long a request that does not wait is kept. */
static void acquire_queue(struct engine *e, struct contender *k)
{
	if (!timer_is_set(&k->timer))
		wait_look_at(e, k, INSTANT_NEVER);
}

void acquire_begin(struct engine *e, struct contender *k, enum cause why)
{
	if (e->draining)
		return; /* those who wait for it are about to be refused */
	if (k->state == CONTENDER_QUEUED) {
		if (k->impatient > 0) /* a patient waiter has a timer of its own */
			acquire_queue(e, k);
	} else if (admit(e, &k->entry, INSTANT_NEVER, TAILQ_FIRST(&k->waiters)->origin)) {
		acquire_start(e, k, why);
	} else {
		contender_move(e, k, CONTENDER_QUEUED, CAUSE_NO_ROOM);
		acquire_queue(e, k);
	}
}

/* For the first waiter, on its terms, with a fresh value. */
static struct round *acquire_new_round(struct engine *e, struct contender *k)
{
	const struct claim *head = TAILQ_FIRST(&k->waiters);
	struct round *r = round_new(&e->rounds, QUESTION_ACQUIRE, k->name, NULL);

	lock_value_make(&e->table, members_one_clock_us(&e->members, e->core->now), &r->value);
	r->value.limit = lock_mark(lock_of_contender(k));
	r->placed = placed_nowhere(e->core->now);
	r->ttl_us = head->ttl_us;
	r->delay_us = head->delay_us;
	r->form = (uint8_t)contender_form(head);
	return r;
}

/* Begins the round now. */
static void acquire_start(struct engine *e, struct contender *k, enum cause why)
{
	struct round *r;
	int lead;

	if (members_that_may_grant(&e->members) < engine_quorum(e)) {
		wait_for_quorum(e, k);
		return;
	}
	contender_move(e, k, CONTENDER_ACQUIRING, why);
	r = acquire_new_round(e, k);
	k->round = r;
	k->woken = NODESET_NONE;
	r->range = tokens_range(&e->tokens, e->core, k->name, k->patient);
	lead = split_take_leader(e, k);
	if (lead >= 0)
		r->not_asked = nodeset_without(NODES_ALL, nodeset_of((unsigned)lead));
	r->until = instant_add(e->core->now, e->core->conf.timeout_us);
	acquire_ask(e, r, nodeset_without(NODES_ALL, r->not_asked), tokens_propose(&e->tokens, e->core, r->range));
	acquire_await(e, r);
	metric_add(&e->core->metrics, METRIC_ROUNDS, 1);
}

/* If a release of the name waits, the round would find our own dead value: it waits for the release. */
bool acquire_admitted(struct engine *e, struct contender *k)
{
	if (k->name->releases > 0)
		admission_park(&k->entry);
	else
		acquire_start(e, k, CAUSE_ADMITTED);
	return !k->entry.parked;
}

void acquire_next(struct engine *e, struct lock *l)
{
	if (!TAILQ_EMPTY(&l->contender->waiters))
		acquire_begin(e, l->contender, CAUSE_FREED);
	else
		lock_drop_if_unused(&e->table, l);
}

static void acquire_close(struct engine *e, struct round *r)
{
	r->decided = true;
	contender_of_name(r->calls.name)->round = NULL;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

/*
 * How long the second round waits. It asks stores that have just answered, and meanwhile nobody else can have the lock. So it does not wait the whole timeout
 * for a store that begins to hang.
 */
static int64_t acquire_raise_us(const struct engine *e)
{
	int64_t us = 2 * members_answer_us(&e->members), most = e->core->conf.timeout_us;

	us = us < RAISE_LEAST_US ? RAISE_LEAST_US : us;
	return us < most ? us : most;
}

/*
 * Second round: the token is the largest base, and the stores that granted are asked. If that base may exceed the limit of one of them, the token is the Q-th
 * smallest base, and stores with a larger base are not asked. If that exceeds the limit of a store that granted it, the others accept it beyond their limits.
 */
static void acquire_raise(struct engine *e, struct round *first)
{
	struct contender *k = contender_of_name(first->calls.name);
	struct round *r = round_new(&e->rounds, QUESTION_RAISE, k->name, NULL);
	struct span value = value_in_text(e->core, &first->value);
	bool beyond;

	r->token = round_largest(first, e->core->conf.nodes);
	if (tokens_base_is_far(&e->members, first, r->token))
		r->token = round_least(first, e->core->conf.nodes);
	beyond = tokens_base_is_beyond(&e->members, first, r->token);
	acquire_close(e, first);
	k->round = r;
	r->value = first->value;
	r->placed = first->placed;
	r->ttl_us = first->ttl_us;
	r->delay_us = first->delay_us;
	r->form = first->form;
	r->range = first->range;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(first->granted, i) && first->base[i] <= r->token) {
			ask_raise(&e->calls, r, i, value, beyond);
			nodeset_add(&r->placed.unanswered, i);
		}
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, acquire_raise_us(e)));
}

/* The round is decided within this time, by the answers until then. */
static void acquire_limit(struct engine *e, struct round *r, int64_t us)
{
	r->until = instant_min(r->until, instant_add(e->core->now, us));
	acquire_await(e, r);
}

/* The same, and stores that were left out are not asked any more. */
static void acquire_hurry(struct engine *e, struct round *r, int64_t us)
{
	r->left_out = NODESET_NONE;
	acquire_limit(e, r, us);
}

/* Bases differ, and a store has not answered: it gets a little time to agree. */
static void acquire_await_stragglers(struct engine *e, struct round *r)
{
	int64_t rtt = STRAGGLER_LEAST_US;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(r->granted, i) && 2 * e->members.node[i].rtt_us > rtt)
			rtt = 2 * e->members.node[i].rtt_us;
	acquire_hurry(e, r, rtt);
}

/*
 * A quorum has answered, and the votes are split so far. In a race the round does not wait for a store that hangs, because the round's votes exclude others
 * meanwhile. If the key of a dead daemon splits the votes, only a slow store can help. If only requests that do not wait are left, no round follows, so this
 * one lasts the whole timeout. If somebody waits, it lasts split_lasting_us() at most: the dead key may end while the votes of this round exclude others.
 */
static void acquire_await_split(struct engine *e, struct round *r)
{
	if (split_has_rivals(e, r))
		acquire_hurry(e, r, members_answer_us(&e->members));
	else if (contender_of_name(r->calls.name)->patient)
		acquire_limit(e, r, split_lasting_us(e));
}

static enum round_outcome acquire_decide(struct engine *e, struct round *r, int64_t *ret_token)
{
	enum round_outcome outcome = round_outcome(r, e->core->conf.nodes, e->core->now, ret_token);

	switch (outcome) {
	case ROUND_PENDING:
		break;
	case ROUND_UNDECIDED:
		acquire_await_split(e, r);
		break;
	case ROUND_UNEVEN:
		acquire_await_stragglers(e, r);
		break;
	case ROUND_RAISE:
		acquire_raise(e, r);
		break;
	default:
		acquire_close(e, r);
		return outcome;
	}
	return ROUND_PENDING;
}

/* Proposes the largest base that was granted, so that the bases agree. */
static void acquire_ask_also(struct engine *e, struct round *r, struct nodeset nodes)
{
	acquire_ask(e, r, nodes, nodeset_any(r->granted) ? round_largest(r, e->core->conf.nodes) : tokens_propose(&e->tokens, e->core, r->range));
	acquire_await(e, r);
}

static void acquire_ask_first(struct engine *e, struct round *r, unsigned node)
{
	nodeset_remove(&r->not_asked, node);
	acquire_ask_also(e, r, nodeset_of(node));
}

static void acquire_widen(struct engine *e, struct round *r)
{
	struct nodeset later = nodeset_or(r->not_asked, r->left_out);

	r->not_asked = NODESET_NONE;
	r->until = instant_add(e->core->now, e->core->conf.timeout_us);
	acquire_ask_also(e, r, later);
}

bool acquire_ask_more(struct engine *e, struct round *r)
{
	if (TAILQ_EMPTY(&contender_of_name(r->calls.name)->waiters))
		return false;
	if (nodeset_any(r->not_asked))
		acquire_widen(e, r);
	else if (nodeset_any(r->left_out) && instant_before(e->core->now, r->until))
		acquire_ask_also(e, r, r->left_out);
	else
		return false;
	return true;
}

/* The leading node has answered. If it granted, its base is proposed to the others, so that the bases agree. */
static enum round_outcome acquire_led(struct engine *e, struct round *r, unsigned node)
{
	struct contender *k = contender_of_name(r->calls.name);
	enum round_outcome outcome = TAILQ_EMPTY(&k->waiters) ? ROUND_UNWANTED : round_led(r, e->core->conf.nodes, node);
	int next = outcome == ROUND_LEADER_TAKEN ? split_next_leader(e, r, node) : -1;

	if (next >= 0) {
		acquire_ask_first(e, r, (unsigned)next);
		return ROUND_PENDING;
	}
	if (outcome == ROUND_PENDING)
		acquire_widen(e, r);
	else
		acquire_close(e, r);
	return outcome;
}

/*
 * A late grant to a decided round, the round of the lease or of the second round under way. If a renewal was sent to this store since then, its answer counts
 * instead: it may have shortened the key.
 */
static void acquire_came_late(struct engine *e, struct round *r, struct placed *placed, unsigned node)
{
	struct lock *l = lock_of_name(r->calls.name);
	bool won = placed == &l->lease.placed;
	struct instant *vote = won ? &l->lease.votes[node] : &l->contender->round->votes.until[node];

	if (!nodeset_has(r->granted, node) || nodeset_has(placed->renewal_sent, node))
		return;
	if (won && (l->lease.state != LEASE_HELD || (r->form == FORM_SHARED && !l->lease.shared))) /* a share does not exclude others */
		return;
	*vote = instant_max(*vote, r->votes.until[node]);
	nodeset_add(&placed->sure, node);
	if (won)
		lease_schedule(e, &l->lease);
}

/* Where the value of the round may be, according to the undecided round, or to the lease that it won. NULL: it was released. */
static struct placed *acquire_placed(struct lock *l, const struct round *r)
{
	struct round *latest = l->contender->round;

	if (latest && latest->value.number == r->value.number)
		return &latest->placed;
	return l->lease.value.number == r->value.number ? &l->lease.placed : NULL;
}

enum round_outcome acquire_answered(struct engine *e, struct round *r, const struct answer *a, int64_t *ret_token)
{
	struct lock *l = lock_of_name(r->calls.name);
	struct placed *placed = acquire_placed(l, r);
	enum round_outcome outcome = ROUND_PENDING;

	if (placed && r->question == QUESTION_RAISE)
		placed_note_answer(placed, a);
	/* A refusal means that the store does not have the value, unless a later renewal has put it there. */
	if (placed && r->question == QUESTION_ACQUIRE && nodeset_has(r->refused, a->node) && !nodeset_has(placed->renewal_sent, a->node))
		nodeset_remove(&placed->nodes, a->node);
	if (a->class == ANSWER_EXECUTED && (a->code == 'B' || a->code == 'S' || a->code == 'K') && l->contender->state == CONTENDER_ACQUIRING) {
		elsewhere_note(e->core, &l->contender->elsewhere, a);
		l->contender->taught = true;
		if (a->code == 'K')
			health_note_wrong_type(&e->members, a->node, name_text(r->calls.name));
		else if (a->defect)
			health_note_unqueued(&e->members, a, name_text(r->calls.name));
		else
			health_note_served(&e->members, a->node, name_text(r->calls.name), nodeset_has(l->contender->ticket_at, a->node));
	}
	if (r->decided) {
		if (placed)
			acquire_came_late(e, r, placed, a->node);
		return ROUND_PENDING;
	}
	if (nodeset_any(r->not_asked))
		outcome = acquire_led(e, r, a->node);
	/* While one store is asked alone, acquire_led() decides; acquire_decide() decides only after that. */
	return outcome == ROUND_PENDING && !nodeset_any(r->not_asked) ? acquire_decide(e, r, ret_token) : outcome;
}

enum round_outcome acquire_expired(struct engine *e, struct round *r, int64_t *ret_token)
{
	return acquire_decide(e, r, ret_token);
}
