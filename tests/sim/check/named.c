/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What COMPLETE and RECENT tell (S30). Of the names k0 … it is tracked which of them a daemon has granted since it started, and which of them last, for each
 * of its users: the clients at its Unix socket are one, and all others one.
 */
#include "tests/sim/world/world.h"

void named_run_begins(struct sim_daemon *d)
{
	memset(&d->named, 0, sizeof(d->named));
	d->named.last[0] = d->named.last[1] = -1;
}

static struct named *named_of(const struct request_sim *q)
{
	return &q->conn->daemon->named;
}

static unsigned user_of(const struct request_sim *q)
{
	return q->conn->client->is_unix;
}

/* Without grace a LOCK that is OK for the first time was granted by this run. */
void named_granted(const struct request_sim *q, struct span line)
{
	struct named *n = named_of(q);
	unsigned user = user_of(q);

	if (line_int(line, "count") != 1 || q->conn->world->plan->grace_ms)
		return;
	n->granted |= 1U << q->name;
	n->last[user] = q->name;
	n->recent[user] |= 1U << q->name;
}

void named_begin(struct request_sim *q)
{
	struct named *n = named_of(q);
	unsigned user = user_of(q);

	q->told = 0;
	q->granted = q->ask == ASK_COMPLETE ? n->granted : n->recent[user];
	q->last = n->last[user];
	q->at_name[0] = '\0';
}

static void complain(const struct request_sim *q, struct span line, const char *what)
{
	checker_fail(q->conn->world, INVARIANT_S30, -1, "client %u asks for %s of '%s': %s: %.*s", q->conn->client->index,
		     q->ask == ASK_RECENT ? "RECENT" : "COMPLETE", q->prefix, what, (int)line.n, line.p);
}

void named_row(struct request_sim *q, struct span line)
{
	struct span name = line_field(line, "name");
	int64_t number = name_number(name);

	if (q->ask != ASK_COMPLETE && q->ask != ASK_RECENT)
		return;
	if (!span_starts(name, span_of(q->prefix)) || name.n >= sizeof(q->at_name))
		complain(q, line, "another name is told");
	if (q->ask == ASK_COMPLETE && q->at_name[0] && strncmp(name.p, q->at_name, name.n) <= 0)
		complain(q, line, "names are not in their order");
	if (number >= 0 && q->told >> number & 1)
		complain(q, line, "a name is told twice");
	if (q->ask == ASK_RECENT && q->told == 0 && q->last >= 0 && number != q->last)
		complain(q, line, "the newest name is not the first");
	if (number >= 0)
		q->told |= 1U << number;
	snprintf(q->at_name, sizeof(q->at_name), "%.*s", (int)name.n, name.p);
}

void named_said(struct request_sim *q, struct span line, bool ok)
{
	if (!ok || (q->ask != ASK_COMPLETE && q->ask != ASK_RECENT))
		return;
	if (line_int(line, "n") > q->list_limit)
		complain(q, line, "too many names are told");
	if (q->full && (q->granted & ~q->told))
		complain(q, line, "a name that its daemon has granted is not told");
}
