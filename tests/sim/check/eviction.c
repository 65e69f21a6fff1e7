/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that vanished while their votes count (S25): a lock whose key was deleted at too many nodes is LOST, and is not put back in silence. */
#include "tests/sim/world/world.h"

/* Not with such faults: the service then lowers votes for reasons that are not counted here. */
static bool votes_are_known(const struct plan *p)
{
	for (unsigned i = 0; i < p->faults; i++)
		if (p->fault[i].kind == FAULT_NODE_CLOCK || p->fault[i].kind == FAULT_DAEMON_HALT)
			return false;
	return true;
}

/*
 * To be called before the answer changes the vote. All requests of one round are sent at the same moment. A node that had no vote and puts the key back did not
 * have it before.
 */
void eviction_answer(struct sim_daemon *d, struct lease *l, const struct call *call, const struct answer *a, struct instant emitted)
{
	unsigned nodes = d->conf.nodes;
	bool denies = a->code == 'A' || a->code == 'B' || a->code == 'K' || a->code == 'M', stood = instant_before(daemon_boot(d), l->until[call->node]);

	if (call->kind != CALL_EXTEND || !denies || (!stood && a->code != 'A'))
		return;
	if (l->round.us != emitted.us)
		l->denied = 0;
	l->round = emitted;
	l->denied |= (uint16_t)(1u << call->node);
	l->evicted |= stood && (unsigned)__builtin_popcount(l->denied) > nodes - (nodes / 2 + 1) && votes_are_known(d->world->plan);
}

void eviction_step(struct sim_daemon *d, const struct lease *l, int64_t name)
{
	if (l->held && l->evicted && !l->conn->going)
		checker_fail(d->world, INVARIANT_S25, name,
			     "%s: daemon %u found the key gone at too many nodes, and has not pushed LOST to client %u", name_of(name),
			     d->index, l->conn->client->index);
}
