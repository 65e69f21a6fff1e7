/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What SHOW, BUSY and TIMEOUT tell of a holder at another daemon (S36). Only of the names k0 …, and where no session outlives its connection: then each hold
 * begins with an OK, and its end is seen.
 */
#include "tests/sim/world/world.h"

#define FIRST_PID 100 /* that of client 0, see conn.c */
/* A card comes within 3 s of its question, or not at all, and is shown for 3 s. One that is late by 2 s may come behind the next question. */
#define TOLD_OLD_US (10 * SEC)

void told_granted(const struct request_sim *q)
{
	q->conn->world->checker.had_at[q->conn->client->index][q->name] = INT64_MAX;
}

void told_freed(const struct conn *c, int64_t name)
{
	c->world->checker.had_at[c->client->index][name] = c->world->now;
}

/* The client whose pid the text shows; -1: none. */
static int64_t client_in(struct span who)
{
	int64_t pid = 0;

	while (who.n > 4 && memcmp(who.p, "pid=", 4) != 0)
		who = (struct span){who.p + 1, who.n - 1};
	for (size_t i = 4; i < who.n && who.p[i] >= '0' && who.p[i] <= '9'; i++)
		pid = 10 * pid + (who.p[i] - '0');
	return pid - FIRST_PID;
}

/* The line tells of the client with that pid that it has the name. */
static void check_told(const struct request_sim *q, int64_t name, int64_t client, struct span line)
{
	struct world *w = q->conn->world;

	w->tally.told++;
	if (client < 0)
		return; /* it is behind TCP */
	if (client >= w->plan->clients || w->checker.had_at[client][name] == 0 || w->checker.had_at[client][name] < w->now - TOLD_OLD_US)
		checker_fail(w, INVARIANT_S36, name, "client %u: of a client that has not had it: %.*s", q->conn->client->index, (int)line.n, line.p);
}

void told_said(struct request_sim *q, struct span line)
{
	struct span who = line_field(line, "who");

	if (q->ask == ASK_LOCK && q->name >= 0 && who.p && !q->conn->world->plan->grace_ms)
		check_told(q, q->name, client_in((struct span){who.p, (size_t)(line.p + line.n - who.p)}), line);
}

/* The k of "SHOW k<name> …"; -1: the request is another one. */
static int64_t name_shown(const struct request_sim *q)
{
	struct span asked = span_of(q->asked), name = line_word(asked, 1);

	if (!span_equal(line_word(asked, 0), SPAN("SHOW")) || name.n != 2 || name.p[0] != 'k')
		return -1;
	return name.p[1] - '0' < q->conn->world->plan->names ? name.p[1] - '0' : -1;
}

void told_row(struct request_sim *q, struct span line)
{
	int64_t name = name_shown(q);

	if (name < 0 || q->conn->world->plan->grace_ms || !span_starts(line_field(line, "holder"), SPAN("@")))
		return;
	if (line_field(line, "peer").p || line_field(line, "name").p)
		check_told(q, name, line_field(line, "pid").p ? line_int(line, "pid") - FIRST_PID : -1, line);
}
