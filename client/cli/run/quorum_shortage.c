/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the stores that are away, and those in quarantine, which answer but may have forgotten locks.
 */
#include "client/cli/run/quorum_shortage.h"
#include "client/lib/display.h"

#include <stdio.h>
#include <string.h>

struct votes {
	unsigned nodes, joined, quarantined;
	int64_t left_ms; /* of the quarantine that ends last */
	bool memory;     /* the daemon's own store */
};

static bool is_word(const struct redlock_line *row, const char *field, const char *word)
{
	struct redlock_bytes value = redlock_line_find(row, field);

	return value.n == strlen(word) && !memcmp(value.p, word, value.n);
}

static void votes_row(void *arg, const struct redlock_line *row)
{
	struct votes *v = arg;
	int64_t left_ms = redlock_line_number(row, "left_ms", 0);

	v->nodes++;
	v->memory |= is_word(row, "node", "memory");
	v->joined += is_word(row, "state", "joined");
	if (!is_word(row, "state", "quarantine"))
		return;
	v->quarantined++;
	if (left_ms > v->left_ms)
		v->left_ms = left_ms;
}

static void votes_text(const struct votes *v, char out[QUORUM_SHORTAGE_BYTES])
{
	const char *stores = v->memory ? "stores" : "Redis servers";
	unsigned quorum = v->nodes / 2 + 1;
	char age[AGE_BYTES];

	out[0] = '\0';
	if (v->joined >= quorum)
		return;
	if (v->joined + v->quarantined < quorum)
		snprintf(out, QUORUM_SHORTAGE_BYTES, "too few %s answer: %u of %u, %u are needed", stores, v->joined + v->quarantined,
			 v->nodes, quorum);
	else
		snprintf(out, QUORUM_SHORTAGE_BYTES,
			 "too few %s vote: %u of %u, %u are needed; %u may have forgotten locks and wait for up to %s", stores,
			 v->joined, v->nodes, quorum, v->quarantined, age_text(v->left_ms, age));
}

int quorum_shortage_ask(struct redlock *c, char out[QUORUM_SHORTAGE_BYTES])
{
	struct votes v = {0};
	int r = redlock_request(c, "LIST nodes", 0, votes_row, &v);

	if (!r)
		votes_text(&v, out);
	return r;
}
