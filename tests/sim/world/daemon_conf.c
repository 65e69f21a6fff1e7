/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of a daemon: that of all, or, for the last one of some worlds, another. */
#include "daemon/core/quorum.h"
#include "tests/sim/world/world.h"

static const char *const host_name[DAEMONS_MAX] = {"h0", "h1", "h2", "h3", "h4"};
static const char *const node_name[NODES_MAX] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

/* Gives the daemon another configuration, such that each of its quorums still shares a node with each quorum of the others. */
static void daemon_configure_stranger(struct sim_daemon *d)
{
	enum stranger how = (enum stranger)d->world->plan->stranger;

	if (how == STRANGER_LEASE)
		d->conf.max_lease_us += SEC;
	else if (how == STRANGER_NODES && d->conf.nodes > 1)
		d->conf.nodes--;
	else if (how == STRANGER_GENERATION && d->world->plan->stranger_lease_us)
		d->conf.max_lease_us = d->world->plan->stranger_lease_us;
	else
		d->conf.set = "another";
	if (d->conf.lease_us > d->conf.max_lease_us)
		d->conf.lease_us = d->conf.max_lease_us;
	if (how == STRANGER_GENERATION)
		d->conf.generation++;
}

void daemon_configure(struct sim_daemon *d)
{
	const struct plan *p = d->world->plan;

	d->conf = (struct core_conf){
		.nodes = (unsigned)p->nodes,
		.store = "redis",
		.shared = true,
		.foreign = p->foreign != 0,
		.set = "simulated",
		.generation = 1,
		.host = host_name[d->index],
		.timeout_us = p->timeout_us,
		.window = (unsigned)p->window,
		.lease_us = p->lease_us,
		.min_lease_us = 50 * MSEC,
		.max_lease_us = p->max_lease_us,
		.max_delay_us = p->delay_us,
		.skew_us = SKEW_US,
		.max_grace_us = 10 * SEC,
		.clock_tol_us = clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us),
		.tell_moves = d->world->trace != NULL,
		.listed = p->storm ? 24 : 0, /* so that even a short page takes several slices */
		.limits = {.locks = 1024, .waiting = 256, .name = 512, .mistakes = 100, .line = 8192},
	};
	for (unsigned i = 0; i < p->nodes; i++)
		d->conf.label[i] = node_name[i];
	d->strange = p->stranger && d->index == p->daemons - 1;
	if (d->strange)
		daemon_configure_stranger(d);
}
