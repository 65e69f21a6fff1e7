/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting the answers of a round. */
#include "daemon/core/round.h"

int64_t round_largest(const struct op *op, unsigned nodes)
{
	int64_t largest = -1;

	for (unsigned i = 0; i < nodes; i++)
		if (nodeset_has(op->yes, i) && op->base[i] > largest)
			largest = op->base[i];
	return largest;
}

int64_t round_least(const struct op *op, unsigned nodes)
{
	struct votes base;

	votes_clear(&base, nodes);
	for (unsigned i = 0; i < nodes; i++)
		if (nodeset_has(op->yes, i))
			base.until[i].us = -op->base[i]; /* the Q-th largest of the negated */
	return -votes_deadline(&base, nodes).us;
}

/* The base that Q stores granted. */
static int64_t round_agreed(const struct op *op, unsigned nodes)
{
	if (MUTATED(MAX_WITHOUT_ROUND))
		return round_largest(op, nodes);
	for (unsigned i = 0; i < nodes; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < nodes && nodeset_has(op->yes, i); j++)
			same += nodeset_has(op->yes, j) && op->base[j] == op->base[i];
		if (same >= quorum_of(nodes))
			return op->base[i];
	}
	return -1;
}

unsigned round_same_holder_at(const struct op *op, unsigned nodes, unsigned node)
{
	unsigned same = 0;

	for (unsigned i = 0; i < nodes && nodeset_has(op->busy, node); i++)
		same += nodeset_has(op->busy, i) && op->holder[i] == op->holder[node];
	return same;
}

unsigned round_same_holder(const struct op *op, unsigned nodes)
{
	unsigned most = 0;

	for (unsigned i = 0; i < nodes; i++) {
		unsigned same = round_same_holder_at(op, nodes, i);

		most = same > most ? same : most;
	}
	return most;
}

/* The Q-th smallest remaining TTL, a free store counting 0. */
int64_t round_pttl_ms(const struct op *op, unsigned nodes)
{
	struct votes ttl;
	int64_t left;

	votes_clear(&ttl, nodes);
	for (unsigned i = 0; i < nodes; i++) {
		if (!nodeset_has(op->busy, i))
			ttl.until[i].us = 0;
		else if (op->base[i] >= 0)
			ttl.until[i].us = -op->base[i]; /* the Q-th largest of the negated */
	}
	left = votes_deadline(&ttl, nodes).us;
	return left == INT64_MIN ? -1 : -left;
}

/* A quorum refuses it: somebody holds it, or has an older ticket. */
static bool round_is_held(const struct op *op, unsigned nodes)
{
	unsigned quorum = quorum_of(nodes);

	return round_same_holder(op, nodes) >= quorum || (nodeset_any(op->behind) && nodeset_count(nodeset_or(op->busy, op->behind)) >= quorum);
}

/* Grant only what is worth having: the loss would be told at once otherwise. */
static bool round_is_useful(const struct op *op, unsigned nodes, struct instant now)
{
	return instant_diff(votes_deadline(&op->votes, nodes), now) > lead_us(op->ttl_us) + op->ttl_us / 10;
}

/* Not won: is it clear already whether somebody holds it, the votes are split, or too few stores answer? */
static bool round_is_clear(const struct op *op, unsigned nodes, struct nodeset open)
{
	return !nodeset_any(open) || round_is_held(op, nodes) || nodeset_count(nodeset_or(op_told(op), open)) < quorum_of(nodes);
}

enum round_outcome round_failure(const struct op *op, unsigned nodes)
{
	unsigned quorum = quorum_of(nodes);

	if (op->range > 0 && nodeset_any(op->over) && nodeset_count(nodeset_or(nodeset_or(op->yes, op->over), op->open)) >= quorum)
		return ROUND_RANGE_REFUSED;
	if (nodeset_any(op->later))
		return ROUND_LEADER_TAKEN;
	if (nodeset_count(op->alien) >= quorum)
		return ROUND_WRONG_TYPE;
	if (round_is_held(op, nodes))
		return ROUND_HELD;
	if (op->kind == OP_RAISE && nodeset_any(op->open))
		return ROUND_SPLIT; /* a quorum granted, and one of it hangs since */
	return op_is_refused(op) && nodeset_count(op_told(op)) >= quorum ? ROUND_SPLIT : ROUND_NO_ANSWER;
}

enum round_outcome round_led(const struct op *op)
{
	return op_is_refused(op) && !nodeset_any(op->alien) ? ROUND_LEADER_TAKEN : ROUND_PENDING;
}

enum round_outcome round_outcome(const struct op *op, unsigned nodes, struct instant now, int64_t *ret_token)
{
	unsigned quorum = quorum_of(nodes);
	struct nodeset open;

	if (nodeset_count(op->yes) >= quorum) {
		int64_t token = op->kind == OP_RAISE ? op->fence : round_agreed(op, nodes);

		if (token < 0)
			return op->expired || !nodeset_any(op->open) ? ROUND_RAISE : ROUND_UNEVEN;
		if (!round_is_useful(op, nodes, now))
			return ROUND_TOO_LATE;
		*ret_token = token;
		return ROUND_WON;
	}
	open = op->expired ? NODESET_NONE : nodeset_or(op->open, op->owed);
	if (nodeset_count(nodeset_or(op->yes, open)) < quorum && round_is_clear(op, nodes, open))
		return round_failure(op, nodes);
	if (op->kind == OP_ACQUIRE && op_is_refused(op) && nodeset_count(nodeset_or(op->yes, op->no)) >= quorum)
		return ROUND_RACE;
	return ROUND_PENDING;
}
