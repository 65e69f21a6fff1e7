/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of a daemon: that of all, or, for the last ones of some worlds, another, which may have other servers. */
#include "daemon/core/member/members.h"
#include "tests/sim/world/world.h"

static const char *const host_name[DAEMONS_MAX] = {"h0", "h1", "h2", "h3", "h4"};
static const char *const node_name[NODES_MAX] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

/* Bits: the servers of the common configuration, or of the strange one. */
static uint16_t servers_of(const struct plan *p, bool strange)
{
	uint16_t all = (uint16_t)((1u << p->nodes) - 1), last = (uint16_t)(1u << (p->nodes - 1));
	uint16_t both = (uint16_t)((1u << plan_nodes_least(p)) - 1);

	switch ((enum stranger)p->stranger) {
	case STRANGER_NODES:
		return strange && p->nodes > 1 ? all ^ last : all;
	case STRANGER_FEWER:
		return strange ? both : all;
	case STRANGER_MORE:
		return strange ? all : both;
	case STRANGER_REPLACED:
		return strange ? all ^ last >> 1 : all ^ last;
	default:
		return all;
	}
}

static void nodes_number(struct sim_daemon *d)
{
	const struct plan *p = d->world->plan;
	unsigned n = 0;

	d->servers = servers_of(p, d->strange);
	for (unsigned i = 0; i < p->nodes; i++) {
		if (!daemon_has_server(d, i))
			continue;
		d->server_of[n] = i;
		d->node_of[i] = n;
		d->conf.label[n++] = node_name[i];
	}
	d->conf.nodes = n;
}

/* One of the next generation takes over. Each quorum of another stranger still shares a node with each quorum of the common configuration. */
static void daemon_configure_stranger(struct sim_daemon *d)
{
	const struct plan *p = d->world->plan;
	enum stranger how = (enum stranger)p->stranger;

	if (how == STRANGER_LEASE && !p->stranger_delay_us)
		d->conf.max_lease_us += SEC;
	else if (how >= STRANGER_GENERATION && p->stranger_lease_us)
		d->conf.max_lease_us = p->stranger_lease_us;
	if (how == STRANGER_SET || plan_changes_servers(p) || (how == STRANGER_NODES && p->nodes == 1) || (how == STRANGER_GENERATION && !p->stranger_lease_us))
		d->conf.set = "another";
	if (how >= STRANGER_GENERATION && p->stranger_min_us)
		d->conf.min_lease_us = p->stranger_min_us;
	if (how >= STRANGER_LEASE)
		d->conf.max_delay_us = plan_stranger_delay_us(p);
	if (d->conf.lease_us < d->conf.min_lease_us)
		d->conf.lease_us = d->conf.min_lease_us;
	if (d->conf.lease_us > d->conf.max_lease_us)
		d->conf.lease_us = d->conf.max_lease_us;
	if (how >= STRANGER_GENERATION)
		d->conf.generation++;
}

/* So few that even a short page takes several slices. */
static unsigned listed_at_once(const struct plan *p)
{
	if (p->storm || (p->rolls && p->clients > CLIENTS_COMMON))
		return 24;
	return p->rolls ? 4 + (unsigned)p->clients / 3 : 0;
}

/* Alarms and the slow log decide nothing, but follow every hold and every wait to its end. */
static void daemon_set_alarms(struct sim_daemon *d)
{
	if (d->world->plan->seed % 4 != 1)
		return;
	d->conf.alarm_held_us = 20 * MSEC;
	d->conf.alarm_waited_us = 10 * MSEC;
	d->conf.slow_wait_us = d->conf.slow_hold_us = d->conf.slow_store_us = 10 * MSEC;
}

/* As daemon/main/stores.c: configure_memory(), core_conf_fill(). */
static void daemon_configure_memory(struct sim_daemon *d)
{
	d->conf.store = "memory";
	d->conf.shared = false;
	d->conf.set = "memory";
	d->conf.label[0] = "memory";
	d->conf.soon_us = d->conf.timeout_us;
	d->conf.timeout_us = 10 * SEC;
	d->conf.window = 64;
}

void daemon_configure(struct sim_daemon *d, bool strange)
{
	const struct plan *p = d->world->plan;
	const struct rules *rules = d->conf.rules;

	d->conf = (struct core_conf){
		.store = "redis",
		.shared = true,
		.foreign = p->foreign != 0,
		.set = "simulated",
		.generation = 1,
		.host = host_name[d->index],
		.asks_daemons = p->inquires == 1 || (p->inquires == 2 && d->index > 0),
		.timeout_us = p->timeout_us,
		.window = (unsigned)p->window,
		.lease_us = p->lease_us,
		.home_lost = p->rates == RATES_NEXT ? LOST_NEXT : p->rates == RATES_OPEN ? LOST_OPEN : LOST_CLOSED,
		.min_lease_us = MIN_LEASE_MS * MSEC,
		.max_lease_us = p->max_lease_us,
		.max_keep_us = 3 * p->max_lease_us,
		.max_delay_us = p->delay_us,
		.skew_us = SKEW_US,
		.max_grace_us = 10 * SEC,
		.clock_tol_us = clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us),
		.log_moves = d->world->trace != NULL,
		.listed = listed_at_once(p),
		.work = (unsigned)p->slices,
		.serves_all = true,
		.jobs_keep_us = INT64_C(315360000) * SEC,
		.limits = {.locks = 1024, .waiting = 256, .jobs = 1000, .stored = 1 << 30, .renewals = 1000000,
			   .attempts = 3, .name = 512, .mistakes = 100, .line = 8192},
	};
	d->strange = strange;
	nodes_number(d);
	if (d->strange)
		daemon_configure_stranger(d);
	if (p->memory)
		daemon_configure_memory(d);
	d->conf.rules = rules;
	daemon_set_alarms(d);
}
