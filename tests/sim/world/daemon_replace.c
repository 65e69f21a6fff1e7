/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two daemons with one history: a daemon stands still, another is started on a copy of its directory and gets its clients, then the first goes on. In one
 * directory the lock forbids that: the second daemon is refused until the first is gone. What remains is a directory that was copied whole, or whose lock was
 * removed. Then a lock that the first daemon hands over as it wakes up may overlap with a lock that the second has released. So this fault is of class X:
 * values and tokens protect, beliefs do not.
 */
#include "tests/sim/world/world.h"

#include <string.h>

/* The clients that have a session with grace go to the new daemon; they do not hear the replies of the old one. */
static void clients_move(struct sim_daemon *from, struct sim_daemon *to)
{
	struct world *w = from->world;

	for (unsigned i = 0; i < w->plan->clients; i++) {
		struct sim_client *c = &w->client[i];

		if (c->daemon != from || !c->conn || !c->secret[0])
			continue;
		for (int64_t name = 0; name < w->plan->names; name++)
			if (w->checker.lease[from->index][name].conn == c->conn)
				w->checker.lease[from->index][name].held = false;
		c->conn->taken = true;
		conn_cut(c->conn, GONE_HANGUP, w->now);
		client_lost_conn(c);
		c->daemon = to;
	}
}

static void journal_copy(const struct sim_daemon *from, struct sim_daemon *to)
{
	struct sim_journal *j = &to->journal;

	journal_lose(j);
	buf_append(&j->bytes, buf_begin(&from->journal.bytes), buf_length(&from->journal.bytes));
	j->there = from->journal.there;
	j->copied = true;
	/*
	 * Any run may have said what this journal does not have. The copy may be older than what a client heard last, at a daemon that ran on a copy of the
	 * same directory; it has the session of the client all the same. No daemon can remember a hold or a loss that its journal never had.
	 */
	for (unsigned i = 0; i < from->world->plan->daemons; i++)
		j->torn[i] = from->world->daemon[i].run;
}

/* It runs, on a host that runs, with the configuration of all. */
static bool is_plain(const struct sim_daemon *d)
{
	return d->state == DAEMON_RUNNING && !d->halted && !d->strange;
}

bool daemon_replace(struct sim_daemon *d, struct sim_daemon *successor, int64_t for_us)
{
	struct checker *k = &d->world->checker;

	if (successor == d || !is_plain(d) || !is_plain(successor))
		return false;
	daemon_stop(d, for_us, false);
	daemon_die(successor);
	successor->host = d->host; /* so that their clocks can be compared */
	journal_copy(d, successor);
	memcpy(k->lineage[successor->index], k->lineage[d->index], sizeof(k->lineage[d->index])); /* what its journal remembers */
	daemon_start(successor);
	clients_move(d, successor);
	return true;
}
