/* SPDX-License-Identifier: BSD-2-Clause */
/* S7: a LOCKALL takes all of its names or none, a LOCKANY one; what a group has before it is answered is not the session's. */
#include "tests/sim/world/world.h"

/* What the lines of the daemon say is not all: RESUME moves what the session held, and another request may hear of a turn. */
static bool counts_are_known(const struct conn *c)
{
	return !c->client->graced;
}

static void fail(const struct request_sim *q, const char *what, struct span line)
{
	checker_fail(q->conn->world, INVARIANT_S7, -1, "client %u: %s: %.*s", q->conn->client->index, what, (int)line.n, line.p);
}

/* One more of a name by a LOCKALL or LOCKANY. */
static void group_counts(struct request_sim *q, int64_t name, struct span line)
{
	int64_t *count = &q->conn->read_count[name], said = line_int(line, "count");

	if (name < 0 || !(q->group >> name & 1) || (q->told >> name & 1) || line_int(line, "valid_ms") < 0)
		fail(q, "a name that was not asked for, or that was told before", line);
	if (counts_are_known(q->conn) && said != *count + 1)
		fail(q, "the session held it as often before", line);
	q->told |= 1U << name;
	*count = said;
}

void gathered_row(struct request_sim *q, struct span line)
{
	if (q->ask != ASK_READ || (q->reads != READ_ALL && q->reads != READ_ANY))
		return;
	if (q->reads == READ_ANY || reader_name(line) < 0)
		fail(q, "a row", line);
	else
		group_counts(q, reader_name(line), line), readers_granted(q, reader_name(line), line);
}

static void group_said(struct request_sim *q, struct span line, bool ok)
{
	if (q->reads == READ_ANY && ok)
		group_counts(q, reader_name(line), line), readers_granted(q, reader_name(line), line);
	else if (q->reads == READ_ALL && q->told != (ok ? q->group : 0))
		fail(q, "some names, but not all", line);
}

void gathered_said(struct request_sim *q, struct span line, struct span word)
{
	bool ok = span_equal(word, SPAN("OK")), held;

	if (q->ask != ASK_READ)
		return;
	if (q->reads == READ_ALL || q->reads == READ_ANY) {
		group_said(q, line, ok);
		return;
	}
	if (!counts_are_known(q->conn) || line_field(line, "role").n > 0)
		return;
	held = q->conn->read_count[q->name] > 0;
	if (ok && !held && (q->reads == READ_UNLOCK || (q->reads == READ_OTHER && line_field(line, "fence").n > 0)))
		fail(q, "OK for what the session does not hold", line);
	if (span_equal(line_word(line, 2), SPAN("NOTHELD")) && held)
		fail(q, "NOTHELD for what the session holds", line);
}
