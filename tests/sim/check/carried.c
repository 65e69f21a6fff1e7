/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases of the process before that were broken or at risk (L5). The next process is not told of the votes of such a lease: it asks all nodes, and until a
 * quorum has renewed the lease only the nodes that deny it again count.
 */
#include "tests/sim/world/world.h"

/* The process is replaced. */
void carried_begin(const struct sim_daemon *d, struct lease *l)
{
	struct instant deadline = recount_deadline(d, l);

	l->carried = (struct carried){.until = deadline};
	l->carried.unsure = l->held && (l->broken || l->risked);
}

static unsigned nodes_among(uint16_t bits)
{
	return (unsigned)__builtin_popcount(bits);
}

void carried_answer(const struct sim_daemon *d, struct lease *l, const struct call *call, const struct answer *a)
{
	uint16_t bit = (uint16_t)(1u << call->node);
	struct carried *x = &l->carried;

	if (!x->unsure || call->kind != CALL_EXTEND || a->class != ANSWER_EXECUTED)
		return;
	if (a->code == 'E' || a->code == 'A')
		x->renewed |= bit;
	else if (a->code == 'B' || a->code == 'X' || a->code == 'K' || a->code == 'M')
		x->denied |= bit;
	x->unsure = 2 * nodes_among(x->renewed) <= d->conf.nodes;
}

/* Can this process not know that the votes of the lease end before that moment? */
bool carried_unsurely(const struct sim_daemon *d, const struct lease *l, struct instant at)
{
	const struct carried *x = &l->carried;

	return x->unsure && !instant_before(x->until, at) && 2 * (d->conf.nodes - nodes_among(x->denied)) > d->conf.nodes;
}
