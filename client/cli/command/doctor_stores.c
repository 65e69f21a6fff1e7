/* SPDX-License-Identifier: BSD-2-Clause */
/* See doctor_stores.h. */
#include "client/cli/command/doctor_stores.h"
#include "client/lib/display.h"
#include "proto/defect.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define CLOCKS_APART_MS 500
#define CLOCK_MOST_MS   (INT64_MAX / 2) /* the difference of two does not overflow */
#define TEXT_BYTES      256

static void field_show(const struct redlock_line *row, const char *field, char *out)
{
	struct redlock_bytes value = redlock_line_find(row, field);

	shown_text((struct span){value.p ? value.p : "", value.n}, out, TEXT_BYTES);
}

/* Of a store that does not vote. While it loads its data it only has to be waited for. */
static void trouble_tell(struct doctor_stores *w, const struct redlock_line *row, const char *node, const char *state)
{
	char reason[TEXT_BYTES], cause[TEXT_BYTES];
	enum defect defect;

	field_show(row, "reason", reason);
	field_show(row, "cause", cause);
	defect = defect_of_word(cause);
	finding_tell(w->findings, defect_table[defect].check, defect == DEFECT_LOADING ? FINDING_WARN : FINDING_FAIL, defect_table[defect].advice,
	             "store %s is %s%s%s", node, state, reason[0] ? ": " : "", reason);
}

static void joined_tell(struct doctor_stores *w, const struct redlock_line *row, const char *node)
{
	char reason[TEXT_BYTES], cause[TEXT_BYTES], rtt[TEXT_BYTES] = "";
	int64_t rtt_us = redlock_line_number(row, "rtt_us", 0);
	const struct defect_row *row_of;

	w->joined++;
	field_show(row, "reason", reason);
	field_show(row, "cause", cause);
	if (rtt_us)
		snprintf(rtt, sizeof(rtt), "%" PRId64 ".%02d ms", rtt_us / 1000, (int)(rtt_us % 1000 / 10));
	row_of = &defect_table[defect_of_word(cause)];
	if (cause[0])
		finding_tell(w->findings, row_of->check, row_of->grade == DEFECT_WARN ? FINDING_WARN : FINDING_FAIL, row_of->advice,
		             "store %s votes, but has a problem: %s", node, reason);
	else if (!w->memory)
		finding_tell(w->findings, "store", FINDING_OK, "", "store %s votes%s%s", node, rtt[0] ? ", round trip " : "", rtt);
	if (w->lease_ms && rtt_us / 100 > w->lease_ms)
		finding_tell(w->findings, "round-trip", FINDING_WARN, "place the server nearer, or set a longer lease",
			     "store %s has a round trip of %s, more than a tenth of the lease of %" PRId64 " ms", node, rtt, w->lease_ms);
	if (redlock_line_find(row, "saves").p && w->needs_saving)
		finding_tell(w->findings, "persistence", FINDING_WARN,
		             "see in its log whether its disk is full; then CONFIG SET appendonly yes, and the same in redis.conf",
		             "store %s does not save to disk: locks do not need that, but jobs and rate limits are lost with its memory", node);
}

/* A new store has none to forget, but the daemon cannot know that it is new. */
static void quarantine_tell(struct doctor_stores *w, const struct redlock_line *row, const char *node, const char *reason)
{
	int64_t left_ms = redlock_line_number(row, "left_ms", 0);
	char age[AGE_BYTES];

	if (w->quarantined < NODES_TOLD)
		w->left_ms[w->quarantined++] = MAX(left_ms, 0);
	finding_tell(w->findings, "quarantine", FINDING_WARN, "only wait",
		     "store %s votes in %s, when each lock that it may have forgotten is over%s%s", node, age_text(left_ms, age), reason[0] ? ": " : "",
		     reason);
}

static void node_row(void *arg, const struct redlock_line *row)
{
	struct doctor_stores *w = arg;
	char node[TEXT_BYTES], state[TEXT_BYTES], reason[TEXT_BYTES], cause[TEXT_BYTES];
	int64_t clock_ms = MAX(-CLOCK_MOST_MS, MIN(redlock_line_number(row, "clock_ms", 0), CLOCK_MOST_MS));

	field_show(row, "node", node);
	field_show(row, "state", state);
	field_show(row, "reason", reason);
	field_show(row, "cause", cause);
	w->nodes++;
	w->memory |= !strcmp(node, "memory");
	w->clock_least = MIN(w->clock_least, clock_ms);
	w->clock_most = MAX(w->clock_most, clock_ms);
	if (!strcmp(state, "joined"))
		joined_tell(w, row, node);
	else if (!strcmp(state, "quarantine") && !cause[0])
		quarantine_tell(w, row, node, reason);
	else if (!strcmp(state, "probing") && defect_of_word(cause) == DEFECT_OTHER)
		finding_tell(w->findings, "store", FINDING_WARN, "wait a second; if it stays so, fix the other stores",
		             "store %s is being asked whether it may vote%s%s", node, reason[0] ? ": " : "", reason);
	else
		trouble_tell(w, row, node, strcmp(state, "quarantine") ? state : "in quarantine");
}

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Until quarantines that end by themselves make up for the votes that lack; -1: they are too few. */
static int64_t quarantine_wait_ms(struct doctor_stores *w, int64_t quorum)
{
	int64_t missing = quorum - w->joined;

	if (missing > w->quarantined)
		return -1;
	qsort(w->left_ms, (size_t)w->quarantined, sizeof(w->left_ms[0]), by_number);
	return w->left_ms[missing - 1];
}

static void all_tell(struct doctor_stores *w)
{
	int64_t quorum = w->nodes / 2 + 1, apart_ms = w->clock_most - w->clock_least, apart_tenths = (apart_ms + 99) / 100;
	int64_t wait_ms;
	char age[AGE_BYTES];

	if (w->joined < quorum && (wait_ms = quarantine_wait_ms(w, quorum)) >= 0)
		finding_tell(w->findings, "quorum", FINDING_WARN, "only wait; this is normal after a first start",
			     "no quorum yet: enough stores vote in %s, and locks are granted from then on", age_text(wait_ms, age));
	else if (w->joined < quorum)
		finding_tell(w->findings, "quorum", FINDING_FAIL, "fix the stores above until enough of them vote",
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
			     "the clocks of this host and of the stores are up to %" PRId64 ".%d s apart", apart_tenths / 10, (int)(apart_tenths % 10));
	else if (!w->memory && w->joined)
		finding_tell(w->findings, "clocks", FINDING_OK, "", "the clocks of this host and of the stores agree to %" PRId64 " ms", apart_ms);
}

static void queue_row(void *arg, const struct redlock_line *row)
{
	struct doctor_stores *w = arg;

	(void)row;
	w->queue_rows++;
}

static void figure_row(void *arg, const struct redlock_line *row)
{
	struct doctor_stores *w = arg;
	char metric[TEXT_BYTES];

	field_show(row, "metric", metric);
	w->needs_saving |= (!strcmp(metric, "rates_admitted_total") || !strcmp(metric, "rates_refused_total")) && redlock_line_number(row, "value", 0) > 0;
	if (!strcmp(metric, "journal_writable") && !redlock_line_number(row, "value", 1))
		finding_tell(w->findings, "journal", FINDING_FAIL,
		             "see the log of redlockd for the error: the disk of runtime_dir may be full. If somebody removed it: systemctl restart redlockd",
		             "the journal cannot be written: no session could be resumed after a restart of the daemon");
	if (!strcmp(metric, "sockets_lost") && redlock_line_number(row, "value", 0) > 0)
		finding_tell(w->findings, "sockets", FINDING_FAIL, "see the log of redlockd for the path: remove the file that is there",
		             "nobody can connect to a Unix socket of the daemon: its file was removed, or another one is in its place");
	if (!strcmp(metric, "config_last_reload_successful") && !redlock_line_number(row, "value", 1))
		finding_tell(w->findings, "reload", FINDING_FAIL, "correct what `redlockd --check-config` shows, and reload",
		             "the configuration that was read last has an error: the daemon continues with the former one, and a restart would fail");
}

int doctor_stores_examine(struct doctor_stores *w, struct redlock *c)
{
	int r;

	w->needs_saving = !redlock_request(c, "LIST queues limit=1", 0, queue_row, w) && w->queue_rows > 0;
	r = redlock_request(c, "STATS", 0, figure_row, w);
	if (!r)
		r = redlock_request(c, "LIST nodes", 0, node_row, w);
	if (!r)
		all_tell(w);
	return r;
}
