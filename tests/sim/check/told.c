/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What BUSY and TIMEOUT tell of a holder at another daemon (S36). Only of the names k0 …, and where no session outlives its connection: then each hold begins
 * with an OK, and its end is seen.
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

void told_said(struct request_sim *q, struct span line)
{
	struct world *w = q->conn->world;
	struct span who = line_field(line, "who");
	int64_t client;

	if (q->ask != ASK_LOCK || q->name < 0 || !who.p || w->plan->grace_ms)
		return;
	w->tally.told++;
	client = client_in((struct span){who.p, (size_t)(line.p + line.n - who.p)});
	if (client < 0)
		return; /* it is behind TCP */
	if (client >= w->plan->clients || w->checker.had_at[client][q->name] == 0 || w->checker.had_at[client][q->name] < w->now - TOLD_OLD_US)
		checker_fail(w, INVARIANT_S36, q->name, "client %u: of a client that has not had it: %.*s", q->conn->client->index, (int)line.n, line.p);
}
