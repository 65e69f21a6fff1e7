/* SPDX-License-Identifier: BSD-2-Clause */
/* See ward.h. */
#include "client/ward.h"
#include "client/person.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#define CLOCKS_APART_MS 500
#define CLOCK_MOST_MS   (INT64_MAX / 2) /* the difference of two does not overflow */
#define TEXT_BYTES      256

/* What LIST nodes calls the cause of a trouble, and what doctor makes of it. */
static const struct trouble {
	const char *cause, *check;
	enum finding_status status;
	const char *fix;
} troubles[] = {
	{"replica", "replica", FINDING_FAIL, "name its master in redis.nodes, or make it a master with REPLICAOF NO ONE"},
	{"evicts", "eviction", FINDING_FAIL, "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"},
	{"duplicate", "duplicate", FINDING_FAIL, "name each server once in redis.nodes: two addresses of one server are one vote"},
	{"permission", "permission", FINDING_FAIL, "set redis.password_file, and give its user what redlock doctor --print-acl prints"},
	{"cluster", "cluster", FINDING_FAIL, "name a server that is not in cluster mode"},
	{"writes", "writes", FINDING_FAIL, "see that the server can save to its disk and has memory left"},
	{"configuration", "configuration", FINDING_FAIL,
	 "give all daemons the same redis.nodes, redis.set, max_lease and max_delay, or raise redis.generation"},
	{"clock", "clocks", FINDING_WARN, "run chrony or another NTP client on all hosts"},
	{"sentinel", "sentinel", FINDING_FAIL, "start the sentinels, or correct their addresses and the name of the master in redis.nodes"},
	{"loading", "loading", FINDING_WARN, "wait until the server has loaded its data"},
};

static void field_show(const struct redlock_line *row, const char *field, char *out)
{
	struct redlock_bytes value = redlock_line_find(row, field);

	shown_text((struct span){value.p ? value.p : "", value.n}, out, TEXT_BYTES);
}

static void trouble_tell(struct ward *w, const struct redlock_line *row, const char *node, const char *state)
{
	char reason[TEXT_BYTES], cause[TEXT_BYTES];

	field_show(row, "reason", reason);
	field_show(row, "cause", cause);
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
		const struct trouble *t = &troubles[i];

		if (strcmp(t->cause, cause) != 0)
			continue;
		finding_tell(w->findings, t->check, t->status, t->fix, "store %s is %s: %s", node, state, reason);
		return;
	}
	finding_tell(w->findings, "store", FINDING_FAIL, "start the server, or correct its address in redis.nodes; see that no firewall is between",
		     "store %s is %s%s%s", node, state, reason[0] ? ": " : "", reason);
}

static void joined_tell(struct ward *w, const struct redlock_line *row, const char *node)
{
	char reason[TEXT_BYTES], rtt[TEXT_BYTES] = "";
	int64_t rtt_us = redlock_line_number(row, "rtt_us", 0);

	w->joined++;
	field_show(row, "reason", reason);
	if (rtt_us)
		snprintf(rtt, sizeof(rtt), "%" PRId64 ".%02d ms", rtt_us / 1000, (int)(rtt_us % 1000 / 10));
	if (reason[0] && !w->memory)
		finding_tell(w->findings, "permission", FINDING_FAIL, "give its user what redlock doctor --print-acl prints",
			     "store %s votes, but whoever waits is not told by it when a lock is free: %s", node, reason);
	else if (!w->memory)
		finding_tell(w->findings, "store", FINDING_OK, "", "store %s votes%s%s", node, rtt[0] ? ", round trip " : "", rtt);
	if (w->lease_ms && rtt_us / 100 > w->lease_ms)
		finding_tell(w->findings, "round-trip", FINDING_WARN, "place the server nearer, or set a longer lease",
			     "store %s has a round trip of %s, more than a tenth of the lease of %" PRId64 " ms", node, rtt, w->lease_ms);
	if (redlock_line_find(row, "saves").p)
		finding_tell(w->findings, "persistence", FINDING_WARN, "CONFIG SET appendonly yes, and the same in redis.conf",
			     "store %s has saved nothing to disk since its start: after a restart it does not vote until its locks are over", node);
}

static void node_row(void *arg, const struct redlock_line *row)
{
	struct ward *w = arg;
	char node[TEXT_BYTES], state[TEXT_BYTES], reason[TEXT_BYTES], age[AGE_BYTES];
	int64_t clock_ms = MAX(-CLOCK_MOST_MS, MIN(redlock_line_number(row, "clock_ms", 0), CLOCK_MOST_MS));

	field_show(row, "node", node);
	field_show(row, "state", state);
	field_show(row, "reason", reason);
	w->nodes++;
	w->memory |= !strcmp(node, "memory");
	w->clock_least = MIN(w->clock_least, clock_ms);
	w->clock_most = MAX(w->clock_most, clock_ms);
	if (!strcmp(state, "joined"))
		joined_tell(w, row, node);
	else if (!strcmp(state, "slow"))
		finding_tell(w->findings, "store", FINDING_FAIL, "see whether the server hangs, or set a longer redis.timeout",
			     "store %s does not answer in time", node);
	else if (!strcmp(state, "quarantine"))
		finding_tell(w->findings, "quarantine", FINDING_WARN, "wait; keep the server's data over restarts to avoid it",
			     "store %s does not vote for %s, since it may have forgotten locks: %s", node,
			     age_text(redlock_line_number(row, "left_ms", 0), age), reason);
	else if (!strcmp(state, "probing") && !reason[0])
		finding_tell(w->findings, "store", FINDING_WARN, "wait a second", "store %s is being asked whether it may vote", node);
	else
		trouble_tell(w, row, node, state);
}

static void all_tell(const struct ward *w)
{
	int64_t quorum = w->nodes / 2 + 1, apart_ms = w->clock_most - w->clock_least;
	char age[AGE_BYTES];

	if (w->joined < quorum)
		finding_tell(w->findings, "quorum", FINDING_FAIL, "mend the stores above until enough of them vote",
			     "no quorum: %" PRId64 " of %" PRId64 " stores vote, and %" PRId64 " are needed for any lock", w->joined, w->nodes, quorum);
	else if (w->memory)
		finding_tell(w->findings, "quorum", FINDING_OK, "", "the memory store: locks are of this host only; for several hosts set store: redis");
	else
		finding_tell(w->findings, "quorum", FINDING_OK, "", "quorum: %" PRId64 " of %" PRId64 " stores vote, and %" PRId64 " are needed", w->joined,
			     w->nodes, quorum);
	if (w->nodes % 2 == 0)
		finding_tell(w->findings, "even", FINDING_WARN, "use an odd number: 1, 3 or 5",
			     "%" PRId64 " stores are an even number: they survive no more failures than %" PRId64, w->nodes, w->nodes - 1);
	if (apart_ms > CLOCKS_APART_MS)
		finding_tell(w->findings, "clocks", FINDING_WARN, "run chrony or another NTP client on all hosts",
			     "the clocks of this host and of the stores are up to %s apart", age_text(apart_ms, age));
	else if (!w->memory && w->joined)
		finding_tell(w->findings, "clocks", FINDING_OK, "", "the clocks of this host and of the stores agree to %" PRId64 " ms", apart_ms);
}

int ward_examine(struct ward *w, struct redlock *c)
{
	int r = redlock_request(c, "LIST nodes", 0, node_row, w);

	if (!r)
		all_tell(w);
	return r;
}
