/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks of chores, where they are the names r0 …: handed out with the chore (S32), by one owner alone (S6), and nobody else's meanwhile (S6). */
#include "tests/sim/world/world.h"

static void check_against_reader(const struct sim_client *c, const struct sim_client *other)
{
	const struct job_locking *l = &c->work.lock;
	const struct reading *r = &other->reading[l->name];

	if (r->until > c->world->now)
		checker_fail(c->world, INVARIANT_S6, -1,
		             "r%lld: client %u relies on it for a job, fence %lld until %lld us, client %u in %s fence %lld until %lld us",
		             (long long)l->name, c->index, (long long)l->fence, (long long)l->until, other->index, r->shared ? "shared" : "exclusive",
		             (long long)r->fence, (long long)r->until);
}

static void check_against_job(const struct sim_client *c, const struct sim_client *other)
{
	const struct job_locking *l = &c->work.lock, *m = &other->work.lock;

	if (c != other && m->name == l->name && m->until > c->world->now)
		checker_fail(c->world, INVARIANT_S6, -1,
		             "r%lld: client %u relies on it for a job, fence %lld until %lld us, client %u in fence %lld until %lld us",
		             (long long)l->name, c->index, (long long)l->fence, (long long)l->until, other->index, (long long)m->fence, (long long)m->until);
}

void check_job_lock(const struct sim_client *c)
{
	const struct world *w = c->world;

	for (unsigned i = 0; i < w->plan->clients && c->work.lock.until > w->now; i++) {
		check_against_reader(c, &w->client[i]);
		check_against_job(c, &w->client[i]);
	}
}

/* A client begins to rely on what it reads or writes, or believes for longer. */
void check_jobs_beside(const struct sim_client *c, int64_t name)
{
	const struct world *w = c->world;

	for (unsigned i = 0; w->plan->meets && i < w->plan->clients; i++) {
		const struct job_locking *l = &w->client[i].work.lock;

		if (l->name == name && l->until > w->now && c->reading[name].until > w->now)
			check_against_reader(&w->client[i], c);
	}
}

bool is_of_job(struct span line)
{
	return span_starts(line_field(line, "owner"), SPAN("job:"));
}

/* S9: a CHECK of the lock takes back nothing that the answer to TAKE has promised, where no clock jumps. */
static void check_terms(struct request_sim *q, int64_t name, struct span line)
{
	struct conn *c = q->conn;
	struct instant end = instant_add(daemon_boot(c->daemon), line_int(line, "valid_ms") * MSEC), before = c->job_lock[name].end;

	if (c->world->class == CLASS_T && c->job_lock[name].fence == line_int(line, "fence") && instant_diff(before, end) > 5 * MSEC)
		checker_fail(c->world, INVARIANT_S9, -1, "r%lld: client %u was promised fence %lld for a job, and is now promised %lld us less",
		             (long long)name, c->client->index, (long long)line_int(line, "fence"), (long long)instant_diff(before, end));
	c->job_lock[name].fence = line_int(line, "fence");
	c->job_lock[name].end = end;
}

/* RISK promises less. */
void job_locks_pushed(struct conn *c, struct span line)
{
	if (reader_name(line) >= 0 && is_of_job(line))
		c->job_lock[reader_name(line)].fence = 0;
}

void job_locks_said(struct request_sim *q, struct span line)
{
	struct world *w = q->conn->world;
	int64_t chore = chore_number(line_field(line, "job")), name = reader_name(line);

	if (w->plan->meets && q->ask == ASK_CHORE && q->chore == CHORE_LOCK && name >= 0 && line_int(line, "valid_ms") >= 0)
		check_terms(q, name, line);
	if (!w->plan->meets || q->ask != ASK_CHORE || q->chore != CHORE_TAKE || chore < 0)
		return;
	if (name != chore_lock(w->plan, chore) || (name >= 0 && line_int(line, "fence") <= 0))
		checker_fail(w, INVARIANT_S32, -1, "c%lld, which needs the lock r%lld, is handed out to client %u with another one or none: %.*s",
		             (long long)chore, (long long)chore_lock(w->plan, chore), q->conn->client->index, (int)line.n, line.p);
	if (name < 0)
		return;
	check_terms(q, name, line);
	readers_taken(q, name, line);
}
