/* SPDX-License-Identifier: BSD-2-Clause */
/* See round.h. */
#include "daemon/core/round/round.h"

#include "daemon/base/mem.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/member/membership.h"

#include <inttypes.h>
#include <string.h>

void call_table_init(struct call_table *t, struct core *core, struct members *members)
{
	*t = (struct call_table){.core = core, .members = members, .free_head = CALLS_SLOT_NONE};
}

void call_table_release(struct call_table *t)
{
	mem_free(t->slot);
	mem_free(t->next_free);
}

void call_table_grow(struct call_table *t)
{
	uint32_t old = t->slots;

	t->slots = old ? 2 * old : 256;
	t->slot = mem_grow(t->slot, t->slots, sizeof(struct calls *));
	t->next_free = mem_grow(t->next_free, t->slots, sizeof(*t->next_free));
	for (uint32_t i = t->slots; i-- > old;) {
		t->slot[i] = NULL;
		t->next_free[i] = t->free_head;
		t->free_head = i;
	}
}

/* A second round, or a key that is left, may go to a node that is no longer joined. With the marker of its quarantine, it would give votes. */
static struct span calls_marker(const struct member *m)
{
	return m->marker[0] == 'j' ? span_of(m->marker) : SPAN("none");
}

struct call *calls_send(struct call_table *t, struct calls *c, unsigned node, enum call_kind kind)
{
	struct call *call = core_call(t->core);

	*call = (struct call){
		.id = c->slot, .node = node, .kind = kind, .name = name_text(c->name), .marker = calls_marker(&t->members->node[node]),
		.seen = t->members->node[node].fence_seen};
	c->sent[node] = t->core->now;
	nodeset_add(&c->asked, node);
	nodeset_add(&c->open, node);
	flow_sent(&t->members->node[node].flow, t->core->now);
	return call;
}

/* The moment from which an answer counts. It is earlier than `sent` if the store's clock shows that the call ran earlier, because a clock has jumped since. */
static struct instant calls_sent(const struct member *m, const struct answer *a, struct instant sent)
{
	struct instant earliest = {a->server_us - m->clock.high};

	return a->server_us && m->clock.known ? instant_min(sent, earliest) : sent;
}

/* Logs each answer that is late by slow.store, whatever it says. */
static void calls_log_slow(const struct call_table *t, const struct calls *c, const struct answer *a)
{
	static const char *const word[] = {[ANSWER_EXECUTED] = "executed", [ANSWER_REFUSED] = "refused", [ANSWER_UNKNOWN] = "unknown"};
	int64_t us = instant_diff(t->core->now, c->sent[a->node]);

	if (us >= t->core->conf.slow_store_us && core_may_log(t->core, BURST_SLOW))
		core_log(t->core, LOG_NOTICE, "slow", "kind=store node=%s name=%s took_ms=%" PRId64 " outcome=%s", t->core->conf.label[a->node],
		         core_quoted(t->core, name_unescaped(name_text(c->name))), us / MSEC, word[a->class]);
}

struct calls *calls_answered(struct call_table *t, const struct answer *a)
{
	struct calls *c = a->call < t->slots ? t->slot[a->call] : NULL;
	struct member *m;

	if (!c || !nodeset_has(c->open, a->node))
		return NULL;
	m = &t->members->node[a->node];
	if (t->core->conf.slow_store_us > 0)
		calls_log_slow(t, c, a);
	nodeset_remove(&c->open, a->node);
	flow_answered(&m->flow, c->sent[a->node], t->core->now, a->class == ANSWER_EXECUTED, t->core->conf.timeout_us);
	member_observe(t->members, a, c->sent[a->node]);
	c->sent[a->node] = calls_sent(m, a, c->sent[a->node]);
	return c;
}

struct instant calls_sent_last(const struct call_table *t, const struct calls *c, struct nodeset nodes)
{
	struct instant last = c->begun;

	for (unsigned i = 0; i < t->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			last = instant_max(last, c->sent[i]);
	return last;
}

struct instant calls_slow_at(const struct call_table *t, const struct calls *c)
{
	return instant_add(calls_sent_last(t, c, c->open), t->core->conf.timeout_us);
}

void calls_stall(struct call_table *t, const struct calls *c)
{
	for (unsigned i = 0; i < t->core->conf.nodes; i++)
		if (nodeset_has(c->open, i) && instant_diff(t->core->now, c->sent[i]) >= t->core->conf.timeout_us)
			member_stall(t->members, i);
}

void rounds_init(struct rounds *rs, struct call_table *calls)
{
	rs->calls = calls;
	pool_init(&rs->pool, sizeof(struct round));
}

void rounds_release(struct rounds *rs, struct pool *pendings)
{
	for (uint32_t i = 0; i < rs->calls->slots; i++) {
		struct calls *c = rs->calls->slot[i];
		struct round *r;

		if (!c || c->owner != CALLS_OF_ROUND)
			continue;
		r = round_of_calls(c);
		pool_put(pendings, r->pending);
		calls_close(rs->calls, c);
		pool_put(&rs->pool, r);
	}
	pool_release(&rs->pool);
}

struct round *round_new(struct rounds *rs, enum question question, struct name *name, struct lease *lease)
{
	struct round *r = pool_get(&rs->pool);

	calls_open(rs->calls, &r->calls, CALLS_OF_ROUND, name);
	r->question = question;
	r->timer.kind = TIMER_ROUND;
	votes_clear(r->votes.until, rs->calls->core->conf.nodes);
	r->lease = lease;
	if (!lease)
		return r;
	r->value = lease->value;
	r->ttl_us = lease->ttl_us;
	r->delay_us = lease->delay_us;
	r->form = lease->shared ? FORM_SHARED : FORM_ALONE;
	return r;
}

void round_free(struct rounds *rs, struct round *r)
{
	heap_cancel(&rs->calls->core->timers, &r->timer);
	calls_close(rs->calls, &r->calls);
	pool_put(&rs->pool, r);
}

static void round_add_granted(struct round *r, const struct answer *a)
{
	nodeset_add(&r->granted, a->node);
	r->base[a->node] = a->fence;
	r->votes.until[a->node] = vote_until(r->calls.sent[a->node], r->ttl_us);
}

/* Notes since when a writer elsewhere waits; never 0. */
static void round_count_writer(struct round *r, struct span since)
{
	int64_t us = 0;

	for (size_t i = 0; i < since.n && since.p[i] >= '0' && since.p[i] <= '9' && us < INT64_MAX / 10 - 9; i++)
		us = us * 10 + (since.p[i] - '0');
	us = us > 0 ? us : 1;
	if (since.n > 0 && (r->writer_us == 0 || us < r->writer_us))
		r->writer_us = us;
}

#define TAKEN_BY_READERS 1
#define USE_UNKNOWN      0xffff

/* Notes the use of the name at that store. Nobody uses a broken key. */
static void round_note_use(struct round *r, const struct answer *a)
{
	struct span holder = answer_holder(a);

	r->taken_limit[a->node] = span_starts(holder, SPAN("!")) ? USE_UNKNOWN : (uint16_t)value_limit(holder);
}

bool round_is_in_use(const struct round *r, unsigned nodes, unsigned limit, unsigned *ret_other)
{
	unsigned others = 0, other = 0;

	for (unsigned i = 0; i < nodes; i++) {
		if (!nodeset_has(r->taken, i) || r->taken_limit[i] == USE_UNKNOWN || r->taken_limit[i] == limit)
			continue;
		others++;
		other = r->taken_limit[i];
	}
	if (others < quorum_of(nodes))
		return false;
	*ret_other = other;
	return true;
}

/* Other shares are there. Which ones does not matter: a daemon may have its share at some stores, and another daemon at others. */
static void round_count_shared(struct round *r, const struct answer *a)
{
	nodeset_add(&r->taken, a->node);
	nodeset_add(&r->refused, a->node);
	r->pttl_ms[a->node] = a->pttl_ms;
	round_note_use(r, a);
	r->taken_by[a->node] = TAKEN_BY_READERS;
}

void round_count(struct round *r, const struct answer *a, bool joined)
{
	static const uint64_t value_key[2] = {0, 0};
	struct span found;

	if (a->class == ANSWER_UNKNOWN)
		return;
	if (a->class == ANSWER_REFUSED) {
		nodeset_add(&r->refused, a->node);
		return;
	}
	if (r->form == FORM_SHARED && (a->code == 'G' || a->code == 'E' || a->code == 'A'))
		round_count_writer(r, a->found);
	switch (a->code) {
	case 'G':
	case 'A':
		if (!joined)
			break;
		__attribute__((fallthrough));
	case 'E':
		round_add_granted(r, a);
		break;
	case 'F':
		nodeset_add(&r->range_refused, a->node);
		nodeset_add(&r->refused, a->node);
		break;
	case 'W':
		nodeset_add(&r->queued_behind, a->node);
		nodeset_add(&r->refused, a->node);
		break;
	case 'S':
		round_count_shared(r, a);
		break;
	case 'K':
		nodeset_add(&r->wrong_type, a->node);
		__attribute__((fallthrough));
	case 'B':
		nodeset_add(&r->taken, a->node);
		r->pttl_ms[a->node] = a->pttl_ms;
		round_note_use(r, a);
		found = answer_holder(a);
		if (span_starts(found, SPAN("!")))
			found = (struct span){found.p + 1, found.n - 1};
		r->taken_by[a->node] = siphash(value_key, found.p, found.n); /* broken or not, the value is the same */
		__attribute__((fallthrough));
	default:
		nodeset_add(&r->refused, a->node);
	}
}

int64_t round_largest(const struct round *r, unsigned nodes)
{
	int64_t largest = -1;

	for (unsigned i = 0; i < nodes; i++)
		if (nodeset_has(r->granted, i) && r->base[i] > largest)
			largest = r->base[i];
	return largest;
}

int64_t round_least(const struct round *r, unsigned nodes)
{
	int64_t base[NODES_MAX];

	for (unsigned i = 0; i < nodes; i++)
		base[i] = nodeset_has(r->granted, i) ? r->base[i] : INT64_MAX;
	return quorum_at_most(base, nodes);
}

/* The base that Q stores granted; -1: there is none. */
static int64_t round_agreed(const struct round *r, unsigned nodes)
{
	for (unsigned i = 0; i < nodes; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < nodes && nodeset_has(r->granted, i); j++)
			same += nodeset_has(r->granted, j) && r->base[j] == r->base[i];
		if (same >= quorum_of(nodes))
			return r->base[i];
	}
	return -1;
}

unsigned round_same_value_at(const struct round *r, unsigned nodes, unsigned node)
{
	unsigned same = 0;

	for (unsigned i = 0; i < nodes && nodeset_has(r->taken, node); i++)
		same += nodeset_has(r->taken, i) && r->taken_by[i] == r->taken_by[node];
	return same;
}

unsigned round_same_value(const struct round *r, unsigned nodes)
{
	unsigned most = 0;

	for (unsigned i = 0; i < nodes; i++) {
		unsigned same = round_same_value_at(r, nodes, i);

		most = same > most ? same : most;
	}
	return most;
}

/* The Q-th smallest remaining TTL; a free store counts as 0. */
int64_t round_pttl_ms(const struct round *r, unsigned nodes)
{
	int64_t ttl[NODES_MAX], left;

	for (unsigned i = 0; i < nodes; i++) {
		ttl[i] = nodeset_has(r->taken, i) ? r->pttl_ms[i] : 0;
		if (ttl[i] < 0)
			ttl[i] = INT64_MAX;
	}
	left = quorum_at_most(ttl, nodes);
	return left == INT64_MAX ? -1 : left;
}

/* A quorum refuses it: somebody has the name, or an older ticket. */
static bool round_is_held_elsewhere(const struct round *r, unsigned nodes)
{
	unsigned quorum = quorum_of(nodes);

	return round_same_value(r, nodes) >= quorum || (nodeset_any(r->queued_behind) && nodeset_count(nodeset_or(r->taken, r->queued_behind)) >= quorum);
}

/* A grant must be worth having: otherwise its loss would be reported at once. */
static bool round_is_worth_having(const struct round *r, unsigned nodes, struct instant now)
{
	return instant_diff(votes_deadline(r->votes.until, nodes), now) > loss_lead_us(r->ttl_us) + r->ttl_us / 10;
}

/* Of a round that cannot be won any more: whether the reason is certain by now. */
static bool round_is_clear(const struct round *r, unsigned nodes, struct nodeset open)
{
	return !nodeset_any(open) || round_is_held_elsewhere(r, nodes) || nodeset_count(nodeset_or(round_informative(r), open)) < quorum_of(nodes);
}

enum round_outcome round_failure(const struct round *r, unsigned nodes)
{
	unsigned quorum = quorum_of(nodes);

	if (r->range > 0 && nodeset_any(r->range_refused) && nodeset_count(nodeset_or(nodeset_or(r->granted, r->range_refused), r->calls.open)) >= quorum)
		return ROUND_RANGE_REFUSED;
	if (nodeset_any(r->not_asked))
		return ROUND_LEADER_TAKEN;
	if (nodeset_count(r->wrong_type) >= quorum)
		return ROUND_WRONG_TYPE;
	if (round_is_held_elsewhere(r, nodes))
		return ROUND_HELD_ELSEWHERE;
	if (r->question == QUESTION_RAISE && nodeset_any(r->calls.open))
		return ROUND_SPLIT; /* a quorum granted, and one of its stores hangs since then */
	return round_is_contended(r) && nodeset_count(round_informative(r)) >= quorum ? ROUND_SPLIT : ROUND_NO_ANSWER;
}

enum round_outcome round_led(const struct round *r, unsigned nodes, unsigned node)
{
	if (!nodeset_has(nodeset_or(r->taken, r->queued_behind), node) || nodeset_has(r->wrong_type, node))
		return ROUND_PENDING;
	return round_is_held_elsewhere(r, nodes) ? ROUND_HELD_ELSEWHERE : ROUND_LEADER_TAKEN;
}

enum round_outcome round_outcome(const struct round *r, unsigned nodes, struct instant now, int64_t *ret_token)
{
	unsigned quorum = quorum_of(nodes);
	struct nodeset open;

	if (nodeset_count(r->granted) >= quorum) {
		int64_t token = r->question == QUESTION_RAISE ? r->token : round_agreed(r, nodes);

		if (token < 0)
			return r->expired || !nodeset_any(r->calls.open) ? ROUND_RAISE : ROUND_UNEVEN;
		if (!round_is_worth_having(r, nodes, now))
			return ROUND_TOO_LATE;
		*ret_token = token;
		return ROUND_WON;
	}
	open = r->expired ? NODESET_NONE : nodeset_or(r->calls.open, r->left_out);
	if (nodeset_count(nodeset_or(r->granted, open)) < quorum && round_is_clear(r, nodes, open))
		return round_failure(r, nodes);
	if (r->question == QUESTION_ACQUIRE && round_is_contended(r) && nodeset_count(nodeset_or(r->granted, r->refused)) >= quorum)
		return ROUND_UNDECIDED;
	return ROUND_PENDING;
}

#define NARROW_US SEC
#define CONTENDED_US (5 * SEC) /* for how long a contended name is expected to be contended again */

void tokens_expect(struct tokens *t, const struct core *core, const struct name *name)
{
	unsigned place = name->node.hash & (TOKENS_NAMES - 1);

	t->contended[place].hash = name->node.hash;
	t->contended[place].until = instant_add(core->now, CONTENDED_US);
}

static bool tokens_are_expected(const struct tokens *t, const struct core *core, const struct name *name)
{
	unsigned place = name->node.hash & (TOKENS_NAMES - 1);

	return t->contended[place].hash == name->node.hash && instant_before(core->now, t->contended[place].until);
}

int64_t tokens_range(const struct tokens *t, const struct core *core, const struct name *name, unsigned waiting)
{
	int64_t others = waiting > 0 ? (int64_t)waiting - 1 : 0;

	if (instant_before(core->now, t->narrow_until))
		return 0;
	if (others < TOKENS_AHEAD && tokens_are_expected(t, core, name))
		return TOKENS_AHEAD;
	return others > TOKENS_RANGE_MOST ? TOKENS_RANGE_MOST : others;
}

void tokens_be_modest(struct tokens *t, const struct core *core)
{
	t->modest_until = instant_add(core->now, 2 * core->conf.clock_tol_us + NARROW_US);
}

void tokens_be_narrow(struct tokens *t, struct instant now)
{
	t->narrow_until = instant_add(now, NARROW_US);
}

bool tokens_base_is_beyond(const struct members *ms, const struct round *r, int64_t base)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		if (nodeset_has(r->granted, i) && r->base[i] == base && m->clock.known && base < FENCE_MOST &&
		    base > member_server_ms(m, ms->core->now) * MSEC + members_ahead_us(ms))
			return true;
	}
	return false;
}

bool tokens_base_is_far(const struct members *ms, const struct round *r, int64_t base)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		if (nodeset_has(r->granted, i) && m->clock.known && base > member_server_ms_least(m, ms->core->now) * MSEC + members_ahead_us(ms))
			return true;
	}
	return false;
}

/*
 * From now on the key may be there, at most until its TTL is over. How late the store may set it depends on the uncertainty of its clock. That is noted now,
 * since a later answer may narrow it.
 */
static void ask_note_placed(struct call_table *t, struct round *r, unsigned node)
{
	int64_t px_us = round_px_us(r);
	struct instant until = instant_add(t->core->now, t->core->conf.timeout_us + px_us + px_us / 50 + SEC);
	struct member *m = &t->members->node[node];

	member_note_width(t->members, m, m->clock.high - m->clock.low);
	placed_add(round_placed(r), node, px_us, until);
}

/* Sends a call that may place the value, on the terms of the round. */
static struct call *ask_to_place(struct call_table *t, struct round *r, unsigned node, struct span value, enum call_kind kind)
{
	struct call *call = calls_send(t, &r->calls, node, kind);

	call->value = value;
	if (kind == CALL_EXTEND)
		call->new_value = value;
	call->px_ms = whole_ms(round_px_us(r));
	call->form = r->form;
	ask_note_placed(t, r, node);
	return call;
}

/*
 * A call sets a key within the timeout or not at all: nobody would release a key that is set later. Nor does it set one after the moment when the lease may
 * be over without it: the next run of the daemon would assume that the key had been there all the time.
 */
static int64_t ask_in_time_ms(const struct call_table *t, unsigned node)
{
	return member_server_ms(&t->members->node[node], instant_add(t->core->now, t->core->conf.timeout_us));
}

static int64_t ask_not_after_ms(const struct call_table *t, unsigned node, struct instant lease_end)
{
	int64_t in_time = ask_in_time_ms(t, node), least = member_server_ms_least(&t->members->node[node], lease_end);

	return least < in_time ? least : in_time;
}

static int64_t ask_acquire_by_ms(const struct call_table *t, const struct round *r, unsigned node)
{
	const struct member_clock *clock = &t->members->node[node].clock;

	if (2 * (t->core->conf.timeout_us + clock->high - clock->low) < r->ttl_us)
		return ask_in_time_ms(t, node); /* whatever its clock shows, the lease is not over by then */
	return ask_not_after_ms(t, node, vote_until(t->core->now, r->ttl_us));
}

void ask_acquire(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t proposal, struct span ticket, int64_t reserve_us)
{
	struct call *call = ask_to_place(t, r, node, value, CALL_ACQUIRE);

	call->fence = proposal;
	call->range = r->range;
	call->ticket = ticket;
	call->ticket_ms = TICKET_US / MSEC;
	call->reserve_ms = whole_ms(reserve_us);
	call->not_after_ms = ask_acquire_by_ms(t, r, node);
}

struct call *ask_extend(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t floor, struct instant put_back)
{
	struct call *call = ask_to_place(t, r, node, value, CALL_EXTEND);

	call->fence = floor;
	call->create = instant_before(t->core->now, put_back);
	call->beyond = members_were_set_back(t->members, floor);
	if (call->create)
		call->not_after_ms = ask_not_after_ms(t, node, put_back);
	return call;
}

void ask_raise(struct call_table *t, struct round *r, unsigned node, struct span value, bool beyond)
{
	struct call *call = ask_to_place(t, r, node, value, CALL_EXTEND);

	call->fence = r->token + r->range;
	call->beyond = beyond;
}

void ask_break(struct call_table *t, struct round *r, unsigned node, struct span what)
{
	calls_send(t, &r->calls, node, CALL_BREAK)->value = what;
}

void ask_look(struct call_table *t, struct round *r, unsigned node)
{
	(void)calls_send(t, &r->calls, node, CALL_LOOK);
}
