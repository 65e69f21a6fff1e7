/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-over: a daemon gives a lease to its next waiter without asking the stores, while enough of it is left and nobody elsewhere waits (S9, S20). */
#include "tests/sim/world/world.h"

#define HANDOVER_US   (100 * MSEC) /* hand-overs end so long after another daemon is known to wait */
#define HANDOVERS     64           /* or after so many */
#define HANDOVER_LEFT (50 * MSEC)

void handover_wanted(struct sim_daemon *d, struct span text)
{
	int64_t name = name_number(text);
	struct lease *l = name < 0 ? NULL : &d->world->checker.lease[d->index][name];

	if (l && l->held && l->wanted.us == 0)
		l->wanted = daemon_boot(d);
}

/* A lease is handed over only while enough of it is left (S9), and not for long once another daemon is known to want it (S20). */
void handover_granted(struct sim_daemon *d, const struct lease *l, const struct request_sim *q, struct instant deadline)
{
	int64_t left = instant_diff(deadline, daemon_boot(d)), least = q->ttl_ms * MSEC / 10;
	unsigned handovers = l->grants - 1; /* the first grant came from the stores */

	d->world->tally.handed_on++;
	if (left < (least > HANDOVER_LEFT ? least : HANDOVER_LEFT))
		checker_fail(d->world, INVARIANT_S9, q->name, "%s: daemon %u hands over a lease that lasts only %lld us", name_of(q->name),
			     d->index, (long long)left);
	if (l->wanted.us != 0 && (handovers > HANDOVERS || instant_diff(daemon_boot(d), l->wanted) >= HANDOVER_US))
		checker_fail(d->world, INVARIANT_S20, q->name,
			     "%s: daemon %u hands over for the %u. time what another daemon wants since %lld us", name_of(q->name), d->index,
			     handovers, (long long)instant_diff(daemon_boot(d), l->wanted));
}
