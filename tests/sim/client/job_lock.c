/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locks of chores, where they are the names r0 …, which others lock in both modes, by groups, with keep=, and break. The owner of such a lock is
 * job:<queue>/<chore>. The client relies on it as long as the answer to its TAKE says, and then to each CHECK of it. Some of these clients keep a chore for
 * many leases, and some give back the lock before the chore.
 */
#include "tests/sim/world/world.h"

int64_t chore_lock(const struct plan *p, int64_t chore)
{
	if (!p->meets || chore % 3 == 2)
		return -1;
	return chore / 3 % (p->gathers ? READ_NAMES : READ_FEW);
}

static const struct host *locker_host(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

void job_locker_disclaim(struct sim_client *c)
{
	struct job_locking *l = &c->work.lock;

	l->name = l->chore = -1;
	l->lost = false;
	l->until = 0;
	l->deadline = INSTANT_PAST;
}

void job_locker_begin(struct sim_client *c)
{
	job_locker_disclaim(c);
	stream_init(&c->work.lock.stream, (uint64_t)c->world->plan->seed, DRAW_JOB_LOCKS, c->index);
}

/* --- what it hears --------------------------------------------------------------------------------------------------- */

static void lock_believe(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct job_locking *l = &c->work.lock;

	if (q->conn->left || line_int(line, "valid_ms") < 0)
		return;
	l->deadline = instant_add(q->anchor, line_int(line, "valid_ms") * MSEC);
	l->until = host_true(locker_host(c), l->deadline);
	world_note(c->world, 27, (uint64_t)l->until, "c%u relies on r%lld for c%lld, fence %lld, until %lld", c->index, (long long)l->name,
	           (long long)l->chore, (long long)l->fence, (long long)l->until);
	check_job_lock(c);
}

void job_locker_taken(struct sim_client *c, const struct request_sim *q, struct span line)
{
	const struct plan *p = c->world->plan;
	struct job_locking *l = &c->work.lock;

	if (!p->meets)
		return;
	if (c->work.chore >= 0 && stream_chance(&l->stream, 30))
		l->keeps_until = c->world->now + stream_skewed(&l->stream, p->lease_us, 8 * p->lease_us);
	if (c->work.chore < 0 || reader_name(line) < 0)
		return;
	l->name = reader_name(line);
	l->chore = c->work.chore;
	l->fence = line_int(line, "fence");
	lock_believe(c, q, line);
}

/* The answer to a CHECK: that of an earlier grant proves nothing. */
void job_locker_checked(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	struct job_locking *l = &c->work.lock;

	if (!ok || l->name < 0 || l->name != reader_name(line) || l->fence != line_int(line, "fence") || q->name != l->chore)
		return;
	lock_believe(c, q, line);
}

static bool is_of_lock(const struct job_locking *l, struct span line)
{
	return l->name >= 0 && reader_name(line) == l->name && line_int(line, "fence") == l->fence;
}

void job_locker_pushed(struct sim_client *c, struct span line)
{
	struct job_locking *l = &c->work.lock;
	bool lost = span_equal(line_word(line, 1), SPAN("LOST"));
	struct instant end;

	if (lost && l->chore >= 0 && chore_number(line_field(line, "job")) == l->chore)
		l->lost = true;
	if (!is_of_lock(l, line))
		return;
	if (lost) {
		l->until = 0;
		l->deadline = INSTANT_PAST;
	} else if (span_equal(line_word(line, 1), SPAN("RISK"))) {
		end = instant_add(client_boot(c), line_int(line, "left_ms") * MSEC);
		if (!instant_before(end, l->deadline))
			return;
		l->deadline = end;
		l->until = host_true(locker_host(c), end);
	}
}

/* --- what it asks ---------------------------------------------------------------------------------------------------- */

/* TAKEs that wait for one queue ask for several leases. */
const char *job_locker_ttl(struct sim_client *c)
{
	static char field[32];

	field[0] = '\0';
	if (c->world->plan->meets && stream_chance(&c->work.lock.stream, 40))
		snprintf(field, sizeof(field), " ttl=%lldms", (long long)c->world->plan->lease_us / MSEC / 2);
	return field;
}

bool job_locker_keeps(const struct sim_client *c)
{
	return c->world->plan->meets && c->world->now < c->work.lock.keeps_until;
}

static struct request_sim *lock_say(struct sim_client *c, const char *verb)
{
	int64_t chore = c->work.lock.chore;
	struct request_sim *q = client_ask(c, ASK_CHORE, NULL, "%s r%lld owner=job:w%lld/c%lld", verb, (long long)c->work.lock.name,
	                                   (long long)chore_queue(chore), (long long)chore);

	if (!q)
		return NULL;
	q->name = chore;
	q->chore = CHORE_LOCK;
	return q;
}

/* It has the lock until it has acknowledged that the chore is lost. */
static void lock_outlasts_chore(struct sim_client *c)
{
	struct request_sim *q;

	if (stream_chance(&c->work.lock.stream, 60)) {
		lock_say(c, "CHECK");
		return;
	}
	q = client_ask(c, ASK_CHORE, NULL, "RETRY c%lld", (long long)c->work.lock.chore);
	if (q)
		q->chore = CHORE_RETRY;
	job_locker_disclaim(c);
}

/* One that it gives back before the chore, or acknowledges as lost, is nobody's matter any more when the chore is done. */
bool job_locker_says(struct sim_client *c)
{
	struct work *k = &c->work;

	if (k->lock.name < 0 || k->asks)
		return false;
	if (k->lock.lost) {
		lock_outlasts_chore(c);
		return true;
	}
	if (k->chore < 0 || !stream_chance(&k->lock.stream, 30))
		return false;
	if (!stream_chance(&k->lock.stream, 10)) {
		lock_say(c, "CHECK");
		return true;
	}
	lock_say(c, "UNLOCK");
	job_locker_disclaim(c);
	return true;
}
