/* SPDX-License-Identifier: BSD-2-Clause */
/* What each kind of fault does when it begins and when it ends, those of servers excepted: node_fault.c. A fault that finds nothing to break is not counted. */
#include "tests/sim/world/world.h"

static bool daemon_holds(const struct sim_daemon *d, bool graced)
{
	for (int64_t i = 0; i < d->world->plan->names; i++)
		if (d->world->checker.lease[d->index][i].held &&
		    (!graced || d->world->checker.lease[d->index][i].conn->secret[0]))
			return true;
	return false;
}

/*
 * The daemon that the fault meets. Half of the faults that break links or end a daemon meet, from daemon a on, the next one that holds something (for faults
 * that end it: for a session with grace), if there is one.
 */
static struct sim_daemon *daemon_of(struct world *w, const struct fault *f)
{
	int64_t daemons = w->plan->daemons;
	bool ends = f->kind == FAULT_DAEMON_CRASH || f->kind == FAULT_DAEMON_STOP || f->kind == FAULT_DAEMON_DRAIN;
	bool aimed = f->at_us % 2 && (ends || f->kind <= FAULT_LINK_SLOW);

	for (int64_t i = 0; aimed && i < daemons; i++)
		if (daemon_holds(&w->daemon[(f->a + i) % daemons], ends))
			return &w->daemon[(f->a + i) % daemons];
	return &w->daemon[f->a % daemons];
}

static bool client_holds(const struct sim_client *c)
{
	for (int64_t i = 0; c->conn && i < OWNERS_MAX * NAMES_MAX; i++)
		if (c->conn->account[i / NAMES_MAX][i % NAMES_MAX].count > 0)
			return true;
	return false;
}

/*
 * The client that the fault meets: with x > 3, from client a on, the next one that holds something, if there is one. Most clients hold nothing most of the
 * time.
 */
static struct sim_client *client_of(struct world *w, const struct fault *f)
{
	int64_t clients = w->plan->clients;

	for (int64_t i = 0; f->x > 3 && i < clients; i++)
		if (client_holds(&w->client[(f->a + i) % clients]))
			return &w->client[(f->a + i) % clients];
	return &w->client[f->a % clients];
}

/* --- links ----------------------------------------------------------------------------------------------------------- */

/* When commands flow again: at the healing at the latest, since what is promised of a healed world is counted from there. */
static int64_t link_flows_at(const struct world *w, const struct fault *f)
{
	int64_t until = w->now + f->for_us;

	return until > w->plan->length_us && !fault_is_late(w->plan, f) ? w->plan->length_us : until;
}

static bool link_fault(struct world *w, const struct fault *f)
{
	struct sim_link *l = &daemon_of(w, f)->link[f->b % w->plan->nodes];
	int64_t until = link_flows_at(w, f);

	if (f->kind == FAULT_LINK_RESET) {
		if (!l->up || l->broken)
			return false;
		link_break(l);
		return true;
	}
	if (f->kind == FAULT_LINK_SLOW) {
		l->slow_until = until;
		l->slow = f->x > 1 ? f->x : 2;
		return true;
	}
	if (f->at_us % 16 == 4 || f->at_us % 16 == 7) { /* only one of its connections stalls: see fault.def */
		l->lane_stalled[f->at_us % 2] = until;
		return true;
	}
	if ((f->x & 1) && l->stalled_to < until)
		l->stalled_to = until;
	if ((f->x & 2) && l->stalled_from < until)
		l->stalled_from = until;
	return true;
}

/* --- daemons --------------------------------------------------------------------------------------------------------- */

static void daemon_halt(struct world *w, struct sim_daemon *d, int64_t for_us)
{
	d->halted = true;
	daemon_stop(d, for_us, false);
	for (unsigned i = 0; i < w->plan->clients; i++)
		if (w->client[i].daemon == d && !w->client[i].remote)
			client_stall(&w->client[i], for_us);
}

/* All processes of the host die. */
static void daemon_reboot(struct world *w, struct sim_daemon *d, int64_t for_us)
{
	daemon_die(d);
	d->store->off = true;
	journal_lose(&d->journal);
	for (unsigned i = 0; i < w->plan->clients; i++)
		if (w->client[i].daemon == d && !w->client[i].remote)
			client_die(&w->client[i], for_us);
}

/* Only the fault of a daemon that is its own store. Nothing but itself can be between the two. */
static bool daemon_fault_of_store(struct world *w, struct sim_daemon *d, const struct fault *f)
{
	if (!d->store || f->x < 0 || (f->kind == FAULT_DAEMON_REBOOT && !daemon_is_up(d)))
		return false;
	if (f->kind == FAULT_DAEMON_TORN)
		store_arm(d->store, f->x);
	else
		daemon_reboot(w, d, f->for_us);
	return true;
}

static void daemon_fault_of_store_ends(struct world *w, struct active_fault *active, const struct fault *f)
{
	struct sim_daemon *d = active->daemon;

	if (f->kind == FAULT_DAEMON_TORN && daemon_is_up(d) && (d->store->points > 0 || daemon_is_killed(d)))
		daemon_die(d);
	store_arm(d->store, 0);
	d->store->again = daemon_is_up(d) || f->kind == FAULT_DAEMON_REBOOT ? 0 : f->b;
	if (f->kind == FAULT_DAEMON_REBOOT)
		store_reboot(d->store, (w->now - active->begun_at) >> f->x / 2 % 4, f->x % 2 == 0);
	if (!daemon_is_up(d))
		daemon_start(d);
}

static bool daemon_fault(struct world *w, struct active_fault *active, const struct fault *f)
{
	struct sim_daemon *d = active->daemon;

	if (f->kind == FAULT_DAEMON_TORN || f->kind == FAULT_DAEMON_REBOOT)
		return daemon_fault_of_store(w, d, f);
	if (d->state != DAEMON_RUNNING && f->kind != FAULT_DAEMON_WALL && f->kind != FAULT_DAEMON_CRASH)
		return false;
	switch (f->kind) {
	case FAULT_DAEMON_FREEZE:
	case FAULT_DAEMON_FREEZE_SENDING:
		daemon_stop(d, f->for_us, f->kind == FAULT_DAEMON_FREEZE_SENDING);
		return true;
	case FAULT_DAEMON_CARRY:
		d->carries = true;
		daemon_stop(d, f->for_us, false);
		return true;
	case FAULT_DAEMON_CRASH:
		if (!daemon_is_up(d) || d->halted)
			return false;
		daemon_die(d);
		return true;
	case FAULT_DAEMON_STOP:
		daemon_shut(d);
		return true;
	case FAULT_DAEMON_DRAIN:
		return daemon_drain(d, f->x);
	case FAULT_DAEMON_WALL:
		d->host.offset_us += f->x;
		return true;
	case FAULT_JOURNAL_FAIL:
		journal_fail(d, true);
		return true;
	case FAULT_PUBLISH_LOST:
		d->deaf_until = w->now + f->for_us;
		return true;
	default:
		daemon_halt(w, d, f->for_us);
		return true;
	}
}

/* The healing of the world may end the fault before its time. */
static void daemon_fault_ends(struct world *w, struct active_fault *active, const struct fault *f)
{
	struct sim_daemon *d = active->daemon;

	if ((f->kind == FAULT_DAEMON_CRASH || f->kind == FAULT_DAEMON_STOP) && !daemon_is_up(d)) {
		if (f->x == RESTART_WITHOUT_JOURNAL || f->x == RESTART_FIRST)
			journal_lose(&d->journal);
		d->newcomer = f->x == RESTART_FIRST;
		if (f->x == RESTART_STRANGE && w->plan->stranger)
			daemon_configure(d, true);
		daemon_start(d);
		d->newcomer = false;
	}
	if (f->kind == FAULT_DAEMON_TORN || f->kind == FAULT_DAEMON_REBOOT)
		daemon_fault_of_store_ends(w, active, f);
	if (f->kind == FAULT_JOURNAL_FAIL)
		journal_fail(d, false);
	if (f->kind == FAULT_DAEMON_DRAIN)
		daemon_drain_ends(d);
	if (f->kind == FAULT_DAEMON_HALT) {
		d->host.halted_us += w->now - active->begun_at;
		d->halted = false;
	}
}

/* --- clients --------------------------------------------------------------------------------------------------------- */

/* A proxy that dies closes the connection for a client that lives on, and that relies on what it holds if it has been told that it has grace. */
static enum gone cut_how(const struct sim_client *c, const struct fault *f)
{
	static const enum gone how[] = {GONE_RESET, GONE_KEEPALIVE, GONE_OVERFLOW};

	if (c->conn->secret[0] && f->x % 2)
		return GONE_HANGUP;
	return c->remote ? how[f->x % 3] : GONE_OVERFLOW;
}

static bool conn_fault(struct world *w, struct active_fault *active, const struct fault *f)
{
	struct sim_client *c = client_of(w, f);
	struct conn *conn = c->conn;

	if (!conn || conn->silent)
		return false;
	switch (f->kind) {
	case FAULT_CLIENT_CUT:
		active->conn = conn;
		conn->silent = true;
		conn_cut(conn, cut_how(c, f), w->now);
		return true;
	case FAULT_CLIENT_ANEW:
		active->conn = conn;
		client_lost_conn(c);
		return true;
	case FAULT_CLIENT_SILENT:
		if (!c->remote)
			return false; /* nothing can be lost between two sockets of one host */
		active->conn = conn;
		conn->silent = true;
		return true;
	default:
		if ((f->x & 1) && conn->stalled_until[TO_DAEMON] < w->now + f->for_us)
			conn->stalled_until[TO_DAEMON] = w->now + f->for_us;
		if ((f->x & 2) && conn->stalled_until[TO_CLIENT] < w->now + f->for_us)
			conn->stalled_until[TO_CLIENT] = w->now + f->for_us;
		return true;
	}
}

static bool client_fault(struct world *w, struct active_fault *active, const struct fault *f)
{
	struct sim_client *c = client_of(w, f);

	switch (f->kind) {
	case FAULT_CLIENT_STALL:
		client_stall(c, f->for_us);
		return true;
	case FAULT_CLIENT_CRASH:
		if (client_host_is_halted(c))
			return false;
		client_die(c, f->for_us);
		return true;
	case FAULT_CLIENT_HALF_CLOSE:
		client_leave(c, LEAVE_HALF);
		return true;
	default:
		return conn_fault(w, active, f);
	}
}

/* Both ends notice that the connection is dead: the daemon by its keepalive, unless it knows already. */
static void conn_fault_ends(struct world *w, struct active_fault *active, const struct fault *f)
{
	struct conn *c = active->conn;

	if (!c)
		return;
	active->conn = NULL;
	if (f->kind == FAULT_CLIENT_SILENT || f->kind == FAULT_CLIENT_ANEW)
		conn_cut(c, GONE_KEEPALIVE, w->now);
	if (c->client->conn == c)
		client_lost_conn(c->client);
}

/* --- all faults ----------------------------------------------------------------------------------------------------- */

void fault_begin(struct world *w, struct active_fault *active)
{
	const struct fault *f = &w->plan->fault[active->index];
	enum fault_of of = fault_table[f->kind].of;
	bool done = false;

	if ((of == OF_CLIENT && w->plan->clients == 0) || (of == OF_DAEMON && w->plan->daemons == 0))
		return;
	/* Nothing may tell a restart in place from a pause: not even the hash of the world. */
	world_note(w, 100 + (uint64_t)(f->kind == FAULT_DAEMON_CARRY ? FAULT_DAEMON_FREEZE : f->kind), (uint64_t)f->a,
	           "FAULT %s a=%lld b=%lld x=%lld for %lld us",
		   fault_table[f->kind].word, (long long)f->a, (long long)f->b, (long long)f->x, (long long)f->for_us);
	active->begun_at = w->now;
	active->daemon = of == OF_DAEMON ? daemon_of(w, f) : NULL;
	world_at(w, &active->end, AT_FAULT_END, w->now + f->for_us);
	if (of == OF_NODE)
		done = !w->plan->memory && node_fault(w, f);
	else if (of == OF_CLIENT)
		done = client_fault(w, active, f);
	else if (f->kind <= FAULT_LINK_SLOW)
		done = !w->plan->memory && link_fault(w, f);
	else
		done = daemon_fault(w, active, f);
	if (done)
		w->tally.faults[f->kind]++;
	else
		heap_cancel(&w->heap, &active->end);
}

void fault_ends(struct world *w, struct active_fault *active)
{
	const struct fault *f = &w->plan->fault[active->index];

	heap_cancel(&w->heap, &active->end);
	switch (fault_table[f->kind].of) {
	case OF_NODE:
		node_fault_ends(w, f);
		break;
	case OF_CLIENT:
		conn_fault_ends(w, active, f);
		break;
	case OF_DAEMON:
		daemon_fault_ends(w, active, f);
		break;
	}
}
