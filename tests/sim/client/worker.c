/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that put chores, c0 …, into the queues w0 …, and take, do and give back those of others, beside the jobs of the plan. What they believe is as for
 * locks. What becomes of each chore is checked in check/chores.c. In some worlds they also list queues and chores, remove some, and make due again what has
 * failed for good.
 */
#include "tests/sim/world/world.h"

#define WORKERS   6
#define PAUSE_US  (400 * MSEC)
#define DROP_PERCENT  20
#define AGAIN_PERCENT 60 /* a DEFER of which nobody knows whether it was carried out is repeated */

int64_t chore_number(struct span id)
{
	int64_t n = 0;

	if (id.n < 2 || id.n > 6 || id.p[0] != 'c')
		return -1;
	for (size_t i = 1; i < id.n; i++) {
		if (id.p[i] < '0' || id.p[i] > '9')
			return -1;
		n = 10 * n + (id.p[i] - '0');
	}
	return n < CHORES_MAX ? n : -1;
}

int64_t chore_queue(int64_t chore)
{
	return chore % CHORE_QUEUES;
}

static const struct host *worker_host(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

static void chore_disclaim(struct sim_client *c)
{
	c->work.deadline = INSTANT_PAST;
	c->work.until = 0;
	c->work.chore = -1;
}

void worker_disclaim(struct sim_client *c)
{
	chore_disclaim(c);
	job_locker_disclaim(c);
}

static void worker_believe(struct sim_client *c, const struct request_sim *q, int64_t chore, int64_t valid_ms)
{
	struct work *k = &c->work;

	if (q->conn->left || valid_ms < 0)
		return;
	k->chore = chore;
	k->deadline = instant_add(q->anchor, valid_ms * MSEC);
	k->until = host_true(worker_host(c), k->deadline);
	world_note(c->world, 26, (uint64_t)k->until, "c%u relies on c%lld until %lld", c->index, (long long)chore, (long long)k->until);
	check_chore(c);
}

void worker_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	struct work *k = &c->work;
	int64_t chore = chore_number(line_field(line, "job"));

	if (q->chore == CHORE_TAKE && q->conn == k->conn)
		k->asks = false;
	if (q->chore == CHORE_TAKE && ok && chore >= 0) {
		worker_believe(c, q, chore, line_int(line, "valid_ms"));
		job_locker_taken(c, q, line);
	} else if (q->chore == CHORE_LOCK) {
		job_locker_checked(c, q, line, ok);
	} else if (q->chore == CHORE_CHECK && ok && k->chore == q->name)
		worker_believe(c, q, q->name, line_int(line, "valid_ms"));
	else if (q->chore == CHORE_CHECK && !ok && k->chore == q->name)
		worker_disclaim(c);
	else if (q->chore == CHORE_DEFER && !ok && stream_chance(&k->stream, AGAIN_PERCENT))
		k->again = q->name; /* it may be stored */
}

void worker_pushed(struct sim_client *c, struct span line)
{
	struct work *k = &c->work;
	int64_t chore = chore_number(line_field(line, "job"));
	struct instant end;

	job_locker_pushed(c, line);
	if (chore < 0 || chore != k->chore)
		return;
	if (span_equal(line_word(line, 1), SPAN("LOST"))) {
		chore_disclaim(c);
	} else if (span_equal(line_word(line, 1), SPAN("RISK"))) {
		end = instant_add(client_boot(c), line_int(line, "left_ms") * MSEC);
		if (!instant_before(end, k->deadline))
			return;
		k->deadline = end;
		k->until = host_true(worker_host(c), end);
	}
}

/* A row of RESUME says that the session has the chore, whatever the client asked for before it: but not what it has asked for since. */
void worker_row(struct sim_client *c, const struct request_sim *q, struct span line)
{
	int64_t chore = chore_number(line_field(line, "job"));

	if (q->ask == ASK_RESUME && chore >= 0 && (c->work.chore < 0 || c->work.chore == chore) &&
	    !(c->work.ended_on == q->conn && c->work.ended == chore))
		worker_believe(c, q, chore, line_int(line, "valid_ms"));
	if (q->ask == ASK_CHORE && chore >= 0 && span_equal(line_field(line, "state"), SPAN("dead")))
		c->work.dead = chore;
}

/* --- what it asks ---------------------------------------------------------------------------------------------------- */

static void say_defer(struct sim_client *c)
{
	struct work *k = &c->work;
	struct world *w = c->world;
	int64_t chore = k->again >= 0 ? k->again : w->checker.chores;
	char delay[32] = "", lock[32] = "";
	struct request_sim *q;

	if (chore >= CHORES_MAX)
		return;
	if (stream_chance(&k->stream, 40))
		snprintf(delay, sizeof(delay), " delay=%lldms", (long long)stream_skewed(&k->stream, 1, 3000));
	if (chore % 3 == 0)
		snprintf(lock, sizeof(lock), " lock=x%lld", (long long)(chore / 3 % CHORE_LOCKS));
	if (chore_lock(w->plan, chore) >= 0)
		snprintf(lock, sizeof(lock), " lock=r%lld", (long long)chore_lock(w->plan, chore));
	q = client_ask(c, ASK_CHORE, NULL, "DEFER w%lld work id=c%lld%s%s", (long long)chore_queue(chore), (long long)chore, delay,
		       lock);
	if (!q)
		return;
	q->name = chore;
	q->chore = CHORE_DEFER;
	if (k->again < 0)
		w->checker.chores++;
	k->again = -1;
}

static void say_take(struct sim_client *c)
{
	struct work *k = &c->work;
	int64_t queue = chore_queue(stream_range(&k->stream, 0, CHORE_QUEUES - 1));
	int64_t wait_ms = stream_chance(&k->stream, 40) ? 0 : stream_range(&k->stream, 100, 3000);
	struct request_sim *q = client_ask(c, ASK_CHORE, NULL, "TAKE w%lld wait=%lldms%s", (long long)queue, (long long)wait_ms, job_locker_ttl(c));

	if (!q)
		return;
	q->chore = CHORE_TAKE;
	q->wait_ms = wait_ms;
	k->asks = true;
}

static void say_of_chore(struct sim_client *c, enum chore_ask what)
{
	static const char *const verb[] = {[CHORE_DONE] = "DONE", [CHORE_RETRY] = "RETRY"};
	int64_t chore = c->work.chore, queue = chore_queue(chore);
	struct request_sim *q;

	if (what == CHORE_CHECK)
		q = client_ask(c, ASK_CHORE, NULL, "CHECK w%lld job=c%lld", (long long)queue, (long long)chore);
	else
		q = client_ask(c, ASK_CHORE, NULL, "%s c%lld", verb[what], (long long)chore);
	if (!q)
		return;
	q->name = chore;
	q->chore = what;
	if (what == CHORE_CHECK)
		return;
	c->work.ended_on = q->conn;
	c->work.ended = chore;
	worker_disclaim(c);
}

static void say_beside(struct sim_client *c)
{
	struct work *k = &c->work;
	bool dead = k->dead >= 0 && !k->asks, drops = c->world->checker.chores > 0 && stream_chance(&k->stream, DROP_PERCENT);
	int64_t chore = dead ? k->dead : drops ? stream_range(&k->stream, 0, c->world->checker.chores - 1) : stream_range(&k->stream, 0, CHORE_QUEUES - 1);
	int64_t queue = chore_queue(chore);
	enum chore_ask what = drops ? CHORE_DROP : dead ? CHORE_REVIVE : stream_chance(&k->stream, 70) ? CHORE_JOBS : CHORE_LIST;
	struct request_sim *q;

	if (what == CHORE_REVIVE)
		q = client_ask(c, ASK_CHORE, NULL, "RETRY c%lld queue=w%lld", (long long)chore, (long long)queue);
	else if (what == CHORE_DROP)
		q = client_ask(c, ASK_CHORE, NULL, "DROP w%lld c%lld", (long long)queue, (long long)chore);
	else if (what == CHORE_JOBS)
		q = client_ask(c, ASK_CHORE, NULL, "LIST jobs prefix=w%lld", (long long)queue);
	else
		q = client_ask(c, ASK_CHORE, NULL, "LIST queues");
	if (!q)
		return;
	q->name = chore;
	q->chore = what;
	if (dead)
		k->dead = -1;
}

/* Some never succeed. */
static bool chore_succeeds(const struct plan *p, struct work *k)
{
	return stream_chance(&k->stream, plan_lists_chores(p) && k->chore % 5 == 4 ? 0 : 70);
}

void worker_fired(struct sim_client *c)
{
	struct world *w = c->world;
	struct work *k = &c->work;

	if (w->now > w->plan->length_us + settle_us(w->plan) - SEC)
		return;
	if (c->conn && c->state == CLIENT_RUNNING && !c->conn->left) {
		if (k->conn != c->conn)
			k->asks = false;
		k->conn = c->conn;
		if (job_locker_says(c))
			;
		else if (k->chore >= 0 && job_locker_keeps(c))
			say_of_chore(c, CHORE_CHECK);
		else if (k->chore >= 0)
			say_of_chore(c, stream_chance(&k->stream, 40) ? CHORE_CHECK : chore_succeeds(w->plan, k) ? CHORE_DONE : CHORE_RETRY);
		else if (plan_lists_chores(w->plan) && stream_chance(&k->stream, k->dead >= 0 ? 50 : 12))
			say_beside(c);
		else if (!k->asks && stream_chance(&k->stream, 55))
			say_take(c);
		else
			say_defer(c);
	}
	world_at(w, &k->timer, AT_WORKER, w->now + stream_skewed(&k->stream, MSEC, PAUSE_US));
}

void worker_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	c->work.chore = c->work.again = c->work.dead = -1;
	job_locker_begin(c);
	if (!p->chores || c->index >= WORKERS)
		return;
	stream_init(&c->work.stream, (uint64_t)p->seed, DRAW_CHORES, c->index);
	world_at(c->world, &c->work.timer, AT_WORKER, p->warm_us + stream_range(&c->work.stream, 0, PAUSE_US));
}
