/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/round/round.h"

#include <string.h>

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

/* Since when a writer elsewhere waits. It is never 0. */
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

/* What the name is used as at that store. Nobody uses a key that is broken. */
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

/* Other shares stand there. Which ones does not matter: that of one daemon may stand at some stores, and that of another at others. */
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
		r->taken_by[a->node] = siphash(value_key, found.p, found.n); /* broken or not, it is the same value */
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

/* The Q-th smallest remaining TTL, a free store counting 0. */
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

/* A quorum refuses it: somebody holds it, or has an older ticket. */
static bool round_is_held_elsewhere(const struct round *r, unsigned nodes)
{
	unsigned quorum = quorum_of(nodes);

	return round_same_value(r, nodes) >= quorum || (nodeset_any(r->queued_behind) && nodeset_count(nodeset_or(r->taken, r->queued_behind)) >= quorum);
}

/* Grant only what is worth having: the loss would be told at once otherwise. */
static bool round_is_worth_having(const struct round *r, unsigned nodes, struct instant now)
{
	return instant_diff(votes_deadline(r->votes.until, nodes), now) > loss_lead_us(r->ttl_us) + r->ttl_us / 10;
}

/* Of a round that cannot be won any more: whether it is certain by now why. */
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
		return ROUND_SPLIT; /* a quorum granted, and one of its stores has hung since */
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
