/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon asks of a node, held against what that node has told it (S24): a store is not asked for votes while the daemon knows better, one renewal of a
 * value is under way at a time, a key that is gone is put back only by who still has a quorum.
 */
#include "tests/sim/world/world.h"

#define JUMP_US (100 * MSEC) /* more than what no proof needs: 50 ms and twice the drift */

static struct acquaintance *acquaintance_of(struct sim_daemon *d, unsigned node)
{
	return &d->world->checker.acquaintance[d->index][node];
}

bool asking_knows_all(const struct sim_daemon *d)
{
	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		if (!d->world->checker.acquaintance[d->index][i].named[0])
			return false;
	return true;
}

void asking_life(struct sim_daemon *d)
{
	memset(d->world->checker.acquaintance[d->index], 0, sizeof(d->world->checker.acquaintance[d->index]));
}

/* --- calls ----------------------------------------------------------------------------------------------------------- */

/* The second round of an acquire goes where the first was granted, whatever became known since. */
static bool is_raise(const struct call *call, const struct lease *l)
{
	return call->kind == CALL_EXTEND && l->grants == 0 && !l->adopted;
}

/* Since an earlier step: what falls due in the step that brings the answer is done before that is heard. */
static bool is_known(const struct sim_daemon *d, const struct acquaintance *q)
{
	return d->world->checker.step > q->known_at + 1;
}

/* A marker speaks of one server, and of one history of it; where that is its own in any case, its replication id may change. */
static bool is_named(struct span marker, const struct acquaintance *q)
{
	return memmem(marker.p, marker.n, q->named, strlen(q->named)) != NULL;
}

static void acquaintance_look(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct acquaintance *q = acquaintance_of(d, call->node);
	uint64_t marker = hash_bytes(call->marker.p, call->marker.n);

	if (q->unjoined && is_known(d, q))
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote: that had said that its marker is another's, and was not probed since",
			     d->index, call->node);
	if (q->jumped && q->marker == marker && is_known(d, q))
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote: that had shown that its clock jumped ahead, and was not joined anew",
			     d->index, call->node);
	if (q->fell && q->marker == marker && q->probes == 0 && is_known(d, q))
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote: its fence had fallen, or it had evicted keys, and it was not joined anew", d->index,
			     call->node);
	if (!is_named(call->marker, q) && q->probes == 0 && is_known(d, q))
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote under a marker of another: its identity had changed", d->index,
			     call->node);
	q->jumped &= q->marker == marker;
	q->fell &= q->marker == marker;
	q->marker = marker;
}

/* A vote ends sooner than it was said to: the node has denied it, or has shown that its clock jumped ahead. */
void asking_vote_falls(const struct sim_daemon *d, struct lease *l, unsigned node, struct instant until)
{
	uint64_t step = d->world->checker.step + 1;

	if (l->fell_step[node] != step)
		l->fell[node] = l->until[node];
	l->fell_step[node] = step;
	l->until[node] = until;
}

/* What falls due in the step that brings such an answer is done before that is heard. */
static struct instant vote_known(const struct sim_daemon *d, const struct lease *l, unsigned node)
{
	return l->fell_step[node] == d->world->checker.step ? l->fell[node] : l->until[node];
}

/* Answers come in order only where there is one at a time. */
static void renewal_look(struct sim_daemon *d, const struct call *call, int64_t name, struct lease *l)
{
	uint16_t bit = (uint16_t)(1u << call->node);
	unsigned others = 0;

	if (l->renewing & bit)
		checker_fail(d->world, INVARIANT_S24, name, "%s: daemon %u sends node %u a renewal, and has no answer to the one before", name_of(name),
			     d->index, call->node);
	l->renewing |= bit;
	for (unsigned i = 0; i < d->conf.nodes; i++)
		others += i != call->node && instant_before(daemon_boot(d), instant_add(vote_known(d, l, i), MSEC));
	if (call->create && 2 * others <= d->conf.nodes)
		checker_fail(d->world, INVARIANT_S24, name, "%s: daemon %u would put the key back at node %u, and %u other votes stand", name_of(name),
			     d->index, call->node, others);
}

void asking_call(struct sim_daemon *d, const struct call *call, int64_t name, struct lease *l)
{
	if (call->marker.n > 0 && call->marker.p[0] == 'q')
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote with the marker of a quarantine", d->index, call->node);
	if (!is_raise(call, l))
		acquaintance_look(d, call, name);
	if (call->kind == CALL_EXTEND && !call->exact)
		renewal_look(d, call, name, l);
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

/* How far the clock of the node has certainly jumped ahead since its last answer, by the daemon's own clock; 0: it has not. */
static int64_t jump_seen(struct acquaintance *q, const struct answer *a, struct instant emitted, struct instant now)
{
	int64_t low = a->server_us - now.us, slack = JUMP_US + (now.us - q->at.us) / 50;
	int64_t jump = q->timed && low > q->high + slack ? low - q->high : 0;

	q->timed = true;
	q->at = now;
	q->high = a->server_us - emitted.us;
	return jump;
}

/* It is the clock of the node that was set, and of no other node among three or more; where a majority jumps it is the daemon's own host that stood still. */
static bool is_alone(const struct sim_daemon *d, unsigned node, const struct acquaintance *q, int64_t jump)
{
	const struct world *w = d->world;
	unsigned ahead = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		ahead += w->server[i].ahead_us > 0;
	return w->plan->nodes >= 3 && ahead == 1 && d->host.halted_us == q->halted_us && jump <= w->server[node].ahead_us - q->ahead_us + JUMP_US;
}

/* Its keys end that much sooner than they were said to. */
static void votes_lower(struct sim_daemon *d, unsigned node, int64_t jump)
{
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		struct lease *l = &d->world->checker.lease[d->index][name];

		asking_vote_falls(d, l, node, instant_add(l->until[node], -jump));
	}
}

static void acquaintance_sours(struct sim_daemon *d, bool *ret_why, struct acquaintance *q)
{
	*ret_why = true;
	q->known_at = d->world->checker.step;
}

void asking_probe(struct sim_daemon *d, unsigned node)
{
	struct acquaintance *q = acquaintance_of(d, node);

	q->fence_when_asked = q->fence;
	q->probes++;
}

/* One whose data is its own is known by its run_id alone. */
static struct span second_name(const struct probe *p)
{
	return p->own_data ? SPAN("") : p->replid;
}

static bool identity_is(const struct acquaintance *q, const struct probe *p)
{
	struct span named = span_of(q->named), second = second_name(p);

	return named.n == 2 + p->run_id.n + second.n && named.p[0] == '|' && named.p[1 + p->run_id.n] == '|' &&
	       memcmp(named.p + 1, p->run_id.p, p->run_id.n) == 0 && memcmp(named.p + 2 + p->run_id.n, second.p, second.n) == 0;
}

/* Who the node says that it is, and whether it has forgotten tokens. */
static void identity_heard(struct sim_daemon *d, struct acquaintance *q, const struct answer *a)
{
	bool same = identity_is(q, a->probe), forgot = same && (a->probe->evicted > q->evicted || a->fence < q->fence_when_asked);

	if (forgot && !q->fell)
		acquaintance_sours(d, &q->fell, q);
	if (!same) { /* another run of the server: its marker tells of its memory */
		q->known_at = d->world->checker.step;
		q->fence = a->fence;
	}
	q->evicted = a->probe->evicted;
	if (!same)
		snprintf(q->named, sizeof(q->named), "|%.*s|%.*s", (int)a->probe->run_id.n, a->probe->run_id.p, (int)second_name(a->probe).n,
			 second_name(a->probe).p);
}

void asking_answered(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted)
{
	struct acquaintance *q = acquaintance_of(d, call->node);
	int64_t jump;

	if (call->kind == CALL_PROBE && q->probes > 0)
		q->probes--;
	if (a->class != ANSWER_EXECUTED)
		return;
	if (call->kind == CALL_PROBE && a->probe)
		identity_heard(d, q, a);
	if (a->fence > q->fence)
		q->fence = a->fence;
	if (call->kind == CALL_JOIN && a->code == 'J') {
		q->fence = 0; /* what it held before is not what it must hold now */
		q->fell = false;
	}
	if (call->kind == CALL_PROBE || (call->kind == CALL_JOIN && a->code == 'J'))
		q->unjoined = false;
	else if (a->code == 'Q' && !q->unjoined)
		acquaintance_sours(d, &q->unjoined, q);
	jump = a->server_us ? jump_seen(q, a, emitted, daemon_boot(d)) : 0;
	if (jump > 0 && is_alone(d, call->node, q, jump)) {
		acquaintance_sours(d, &q->jumped, q);
		votes_lower(d, call->node, jump);
	}
	q->ahead_us = d->world->server[call->node].ahead_us;
	q->halted_us = d->host.halted_us;
}
