/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which nodes a daemon may ask for votes (S24). It must not ask a node for a vote when an answer of that node has shown that it must be probed or joined first.
 * It has one renewal of a value under way per node, and puts a missing key back only while a quorum of other votes stands.
 */
#include "tests/sim/world/world.h"

#define JUMP_US (100 * MSEC) /* above what a daemon tolerates without proof: 50 ms and twice the drift */

static struct known_node *known_node_of(struct sim_daemon *d, unsigned node)
{
	return &d->world->checker.known_node[d->index][node];
}

bool known_node_all(const struct sim_daemon *d)
{
	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		if (daemon_has_server(d, i) && !d->world->checker.known_node[d->index][i].named[0])
			return false;
	return true;
}

void known_node_run_begins(struct sim_daemon *d)
{
	memset(d->world->checker.known_node[d->index], 0, sizeof(d->world->checker.known_node[d->index]));
}

/* --- calls ----------------------------------------------------------------------------------------------------------- */

/* The second round of an acquire goes to the nodes that granted the first, whatever the daemon has learned since. */
static bool is_raise(const struct call *call, const struct lease *l)
{
	return call->kind == CALL_EXTEND && l->grants == 0 && !l->adopted;
}

/* The daemon knows only what it learned in an earlier step. A timer that rings in the very step of the answer runs before the answer is read. */
static bool is_known(const struct sim_daemon *d, const struct known_node *known)
{
	return d->world->checker.step > known->known_at + 1;
}

/* A marker names one server and one history of its data. For a server whose data is its own, the replication id may change. */
static bool is_named(struct span marker, const struct known_node *known)
{
	return memmem(marker.p, marker.n, known->named, strlen(known->named)) != NULL;
}

/*
 * Was only the clock of one node ever set ahead? Where a majority jumps, even while the daemon judges the first jump, the daemon takes that for a stop of its
 * own host.
 */
static bool one_is_ahead(const struct world *w)
{
	unsigned ahead = 0;

	for (unsigned i = 0; i < w->plan->nodes; i++)
		ahead += w->server[i].ahead_us > 0;
	return ahead == 1;
}

static void known_node_check(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct known_node *known = known_node_of(d, call->node);
	uint64_t marker = hash_bytes(call->marker.p, call->marker.n);

	if (known->unjoined && is_known(d, known))
		checker_fail(d->world, INVARIANT_S24, name,
			     "daemon %u asks node %u for a vote, though the node said that its marker differs, and was not probed since",
			     d->index, call->node);
	if (known->jumped && known->marker == marker && one_is_ahead(d->world) && is_known(d, known))
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote, though its clock jumped ahead, and it was not joined anew",
			     d->index, call->node);
	if (known->fell && known->marker == marker && known->probes == 0 && is_known(d, known))
		checker_fail(d->world, INVARIANT_S24, name,
			     "daemon %u asks node %u for a vote, though its fence fell or it evicted keys, and it was not joined anew", d->index,
			     call->node);
	if (!is_named(call->marker, known) && known->probes == 0 && is_known(d, known))
		checker_fail(d->world, INVARIANT_S24, name,
			     "daemon %u asks node %u for a vote under a marker that names another server: its identity has changed", d->index,
			     call->node);
	if (known->looked)
		known->expected = 0;
	known->jumped &= known->marker == marker;
	known->fell &= known->marker == marker;
	known->marker = marker;
}

/* A vote ends earlier than was counted: the node denied it, or its clock jumped ahead. */
void known_node_vote_falls(const struct sim_daemon *d, struct lease *l, unsigned node, struct instant until)
{
	uint64_t step = d->world->checker.step + 1;

	if (l->fell_step[node] != step)
		l->fell[node] = l->until[node];
	l->fell_step[node] = step;
	l->until[node] = until;
}

struct instant known_node_vote(const struct sim_daemon *d, const struct lease *l, unsigned node)
{
	return l->fell_step[node] == d->world->checker.step ? l->fell[node] : l->until[node];
}

/* Answers come in order only where one renewal at a time is under way. */
static void renewal_check(struct sim_daemon *d, const struct call *call, int64_t name, struct lease *l)
{
	uint16_t bit = (uint16_t)(1u << call->node);
	unsigned others = 0;

	if (l->renewing & bit)
		checker_fail(d->world, INVARIANT_S24, name, "%s: daemon %u sends node %u a renewal before the previous one is answered", name_of(name),
			     d->index, call->node);
	l->renewing |= bit;
	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		others += i != call->node && instant_before(daemon_boot(d), instant_add(known_node_vote(d, l, i), MSEC));
	if (call->create && 2 * others <= d->conf.nodes)
		checker_fail(d->world, INVARIANT_S24, name, "%s: daemon %u may put the key back at node %u, but only %u other votes stand", name_of(name),
			     d->index, call->node, others);
}

void known_node_call(struct sim_daemon *d, const struct call *call, int64_t name, struct lease *l)
{
	if (call->marker.n > 0 && call->marker.p[0] == 'q')
		checker_fail(d->world, INVARIANT_S24, name, "daemon %u asks node %u for a vote with the marker of a quarantine", d->index, call->node);
	if (!is_raise(call, l))
		known_node_check(d, call, name);
	if (call->kind == CALL_EXTEND && !call->exact)
		renewal_check(d, call, name, l);
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

/* A jump up to this much cannot be told from drift since the last answer. */
static int64_t jump_slack(const struct known_node *known, struct instant now)
{
	return JUMP_US + (now.us - known->at.us) / 50;
}

/* The answer shows the daemon that the clock of the node jumped, or that its own stood still. */
static bool is_ahead(const struct known_node *known, const struct answer *a, struct instant now)
{
	return a->server_us && known->timed && a->server_us - now.us > known->high + jump_slack(known, now);
}

/* How far the clock of the node has provably jumped ahead since its last answer, by the daemon's own clock; 0: not at all. */
static int64_t jump_seen(struct known_node *known, const struct answer *a, struct instant emitted, struct instant now)
{
	int64_t low = a->server_us - now.us, slack = jump_slack(known, now);
	int64_t high = known->high > known->expected ? known->high : known->expected;
	int64_t jump = known->timed && low > high + slack ? low - high : 0;

	known->timed = true;
	known->at = now;
	known->high = a->server_us - emitted.us + (now.us - emitted.us) / 50;
	return jump;
}

/*
 * The daemon asked before it heard of a jump, and the answer shows an earlier clock than is known by now: the call may have run before that jump, so the answer
 * tells nothing of the time since, and gives no vote that lasts.
 */
static bool is_outdated(const struct sim_daemon *d, const struct known_node *known, const struct answer *a, struct instant emitted)
{
	return a->server_us && known->timed && instant_before(emitted, d->world->checker.jump_heard[d->index]) &&
	       a->server_us - emitted.us < known->high - JUMP_US;
}

static bool jumped_alone(const struct sim_daemon *d, unsigned node, const struct known_node *known, int64_t jump)
{
	return d->conf.nodes >= 3 && one_is_ahead(d->world) && d->host.halted_us == known->halted_us &&
	       jump <= d->world->server[node].ahead_us - known->ahead_us + JUMP_US;
}

/* The keys of the node end that much earlier than was counted. */
static void votes_lower(struct sim_daemon *d, unsigned node, int64_t jump)
{
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		struct lease *l = &d->world->checker.lease[d->index][name];

		known_node_vote_falls(d, l, node, instant_add(l->until[node], -jump));
	}
}

static void known_node_distrust(struct sim_daemon *d, bool *ret_why, struct known_node *known)
{
	*ret_why = true;
	known->known_at = d->world->checker.step;
}

void known_node_probe(struct sim_daemon *d, unsigned node)
{
	struct known_node *known = known_node_of(d, node);

	known->fence_when_asked = known->fence;
	known->probes++;
}

/* A server whose data is its own is named by its run_id alone. */
static struct span second_name(const struct probe *p)
{
	return p->own_data ? SPAN("") : p->replid;
}

static bool identity_is(const struct known_node *known, const struct probe *p)
{
	struct span named = span_of(known->named), second = second_name(p);

	return named.n == 2 + p->run_id.n + second.n && named.p[0] == '|' && named.p[1 + p->run_id.n] == '|' &&
	       memcmp(named.p + 1, p->run_id.p, p->run_id.n) == 0 && memcmp(named.p + 2 + p->run_id.n, second.p, second.n) == 0;
}

/* The identity that a probe shows, and whether the node has lost tokens. */
static void identity_heard(struct sim_daemon *d, struct known_node *known, const struct answer *a)
{
	bool same = identity_is(known, a->probe), forgot = same && (a->probe->evicted > known->evicted || a->fence < known->fence_when_asked);

	if (forgot && !known->fell)
		known_node_distrust(d, &known->fell, known);
	if (!same) { /* another run of the server: its marker tells whether it kept its memory */
		known->known_at = d->world->checker.step;
		known->fence = a->fence;
	}
	known->evicted = a->probe->evicted;
	if (!same)
		snprintf(known->named, sizeof(known->named), "|%.*s|%.*s", (int)a->probe->run_id.n, a->probe->run_id.p, (int)second_name(a->probe).n,
			 second_name(a->probe).p);
}

void known_node_answer(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted)
{
	struct known_node *known = known_node_of(d, call->node);
	int64_t jump, stopped = d->host.halted_us - known->halted_us, expected = known->high + stopped;
	bool ahead;

	if (call->kind == CALL_PROBE && known->probes > 0)
		known->probes--;
	if (a->class != ANSWER_EXECUTED)
		return;
	if (call->kind == CALL_PROBE && a->probe)
		identity_heard(d, known, a);
	if (a->fence > known->fence)
		known->fence = a->fence;
	if (a->fence > known->fence_ever)
		known->fence_ever = a->fence;
	if (call->kind == CALL_MARK && a->code == 'J') {
		known->fence = 0; /* its fence may be lower than before */
		known->fell = false;
	}
	if (call->kind == CALL_PROBE || (call->kind == CALL_MARK && a->code == 'J'))
		known->unjoined = false;
	else if (a->code == 'Q' && !known->unjoined)
		known_node_distrust(d, &known->unjoined, known);
	if (is_outdated(d, known, a, emitted))
		return;
	ahead = is_ahead(known, a, daemon_boot(d));
	jump = a->server_us ? jump_seen(known, a, emitted, daemon_boot(d)) : 0;
	if (jump > 0 && jumped_alone(d, call->node, known, jump)) {
		known_node_distrust(d, &known->jumped, known);
		votes_lower(d, call->node, jump);
	} else if (ahead) {
		d->world->checker.jump_heard[d->index] = daemon_boot(d);
	}
	if (stopped > 0) {
		known->expected = expected;
		known->stopped_at = daemon_boot(d);
		known->looked = false;
	}
	known->looked |= !instant_before(emitted, known->stopped_at);
	known->ahead_us = d->world->server[call->node].ahead_us;
	known->halted_us = d->host.halted_us;
}
