/* SPDX-License-Identifier: BSD-2-Clause */
/* See repeater.h. What is asked, and when the connection ends. What is heard: repeat_answer.c. */
#include "tests/sim/world/world.h"

#define PAUSE_US    (300 * MSEC)
#define AGAIN_US    (50 * MSEC)
#define CUT_PERCENT 45

static bool resumes(const struct sim_client *c)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q->ask == ASK_RESUME || q->ask == ASK_HELLO)
			return true;
	return false;
}

/* A session that knows nothing of what an earlier one had. */
static void repeater_begins_anew(struct sim_client *c)
{
	struct repeating *r = &c->repeats;

	repeater_disclaim(c);
	memcpy(r->secret, c->secret, sizeof(r->secret));
}

static void repeater_wakes(struct sim_client *c, int64_t after_us)
{
	world_at(c->world, &c->repeats.timer, AT_REPEATER, c->world->now + after_us);
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

/* Sends the request, for the first time or again. Often the connection ends before the answer is read. */
static void repeater_sends(struct sim_client *c)
{
	struct repeating *r = &c->repeats;
	struct repeat_ask *a = &r->ask;
	int64_t most_us = 6 * c->world->plan->client_latency_us + 2 * c->world->plan->latency_us;
	struct request_sim *q = client_ask(c, ASK_REPEAT, NULL, "%s", a->text);

	if (!q)
		return;
	q->wait_ms = a->wait_ms;
	q->group = 1; /* it may ask several times */
	q->round = a->number;
	repeat_job_bound(a, q);
	a->sent++;
	a->again = false;
	a->last = q->number;
	r->conn = c->conn;
	a->cut = c->world->now < c->world->plan->length_us && stream_chance(&r->stream, CUT_PERCENT);
	if (a->cut && a->wait_ms && stream_chance(&r->stream, 50))
		most_us = 500 * MSEC;
	repeater_wakes(c, a->cut ? stream_skewed(&r->stream, 1, most_us) : stream_skewed(&r->stream, MSEC, PAUSE_US));
}

struct repeat_ask *repeat_new(struct sim_client *c, enum repeat what, unsigned owner, unsigned group)
{
	struct repeat_ask *a = &c->repeats.ask;

	*a = (struct repeat_ask){.open = true, .what = what, .owner = owner, .group = group, .number = ++c->repeats.asked};
	return a;
}

static int64_t draw_wait(struct sim_client *c)
{
	static const int64_t waits[] = {0, 20, 300, 1000, 3000, 5000};

	return waits[stream_range(&c->repeats.stream, 0, 5)];
}

static void ask_lock(struct sim_client *c, unsigned owner, int64_t name)
{
	struct repeating *r = &c->repeats;
	const struct repeat_hold *h = &r->hold[owner][name];
	struct repeat_ask *a = repeat_new(c, REPEAT_LOCK, owner, 1U << name);

	a->count = h->count == REPEAT_MOST || (h->count > 0 && stream_chance(&r->stream, 20)) ? h->count : h->count + 1;
	a->shared = h->count > 0 ? h->shared : stream_chance(&r->stream, 30);
	a->wait_ms = draw_wait(c);
	snprintf(a->text, sizeof(a->text), "LOCK a%lld owner=u%uv%uo%u count=%lld%s wait=%lldms", (long long)name, c->index, r->life, owner,
		 (long long)a->count, a->shared ? " mode=shared" : "", (long long)a->wait_ms);
}

/* Two names that it has not. */
static void ask_group(struct sim_client *c, unsigned owner, int64_t but)
{
	struct repeating *r = &c->repeats;
	int64_t one = (but + 1) % REPEAT_NAMES, two = (but + 2) % REPEAT_NAMES;
	struct repeat_ask *a;
	bool any = stream_chance(&r->stream, 50);

	if (r->hold[owner][one].count > 0 || r->hold[owner][two].count > 0) {
		ask_lock(c, owner, but);
		return;
	}
	a = repeat_new(c, any ? REPEAT_ANY : REPEAT_ALL, owner, 1U << one | 1U << two);
	a->count = 1;
	a->wait_ms = draw_wait(c);
	snprintf(a->text, sizeof(a->text), "%s a%lld a%lld owner=u%uv%uo%u count=1 wait=%lldms", any ? "LOCKANY" : "LOCKALL", (long long)one, (long long)two,
		 c->index, r->life, owner, (long long)a->wait_ms);
}

static void ask_unlock(struct sim_client *c, unsigned owner, int64_t name, int64_t count)
{
	struct repeating *r = &c->repeats;
	const struct repeat_hold *h = &r->hold[owner][name];
	struct repeat_ask *a = repeat_new(c, REPEAT_UNLOCK, owner, 1U << name);
	char fence[32] = "";

	if (h->count > 0 && !h->vague && stream_chance(&r->stream, 50))
		snprintf(fence, sizeof(fence), " fence=%lld", (long long)h->fence);
	a->count = count;
	snprintf(a->text, sizeof(a->text), "UNLOCK a%lld owner=u%uv%uo%u count=%lld%s", (long long)name, c->index, r->life, owner, (long long)count, fence);
	if (count == 0)
		repeat_hold_ends(&r->hold[owner][name]);
}

static void ask_whether(struct sim_client *c, unsigned owner, int64_t name)
{
	struct repeating *r = &c->repeats;
	const struct repeat_hold *h = &r->hold[owner][name];
	struct repeat_ask *a = repeat_new(c, h->count > 0 && stream_chance(&r->stream, 50) ? REPEAT_CHECK : REPEAT_TOO_MANY, owner, 1U << name);

	a->count = h->count + (a->what == REPEAT_TOO_MANY);
	if (a->what == REPEAT_CHECK)
		snprintf(a->text, sizeof(a->text), "CHECK a%lld owner=u%uv%uo%u", (long long)name, c->index, r->life, owner);
	else
		snprintf(a->text, sizeof(a->text), "UNLOCK a%lld owner=u%uv%uo%u count=%lld", (long long)name, c->index, r->life, owner, (long long)a->count);
}

static void ask_acquire(struct sim_client *c, unsigned owner)
{
	struct repeating *r = &c->repeats;
	struct repeat_ask *a = repeat_new(c, REPEAT_ACQUIRE, owner, 0);
	bool known = r->permits[owner] == REPEAT_MOST || (r->permits[owner] > 0 && stream_chance(&r->stream, 20));

	a->count = r->permits[owner] + !known;
	a->wait_ms = draw_wait(c);
	snprintf(a->text, sizeof(a->text), "ACQUIRE y0 limit=%d owner=u%uv%uo%u count=%lld wait=%lldms", REPEAT_MOST, c->index, r->life, owner,
		 (long long)a->count, (long long)a->wait_ms);
}

static void ask_release(struct sim_client *c, enum repeat what, unsigned owner, int64_t count)
{
	struct repeating *r = &c->repeats;
	struct repeat_ask *a = repeat_new(c, what, owner, 0);

	a->count = count;
	snprintf(a->text, sizeof(a->text), "RELEASE y0 owner=u%uv%uo%u count=%lld", c->index, r->life, owner, (long long)count);
	for (int64_t i = count; i < REPEAT_MOST; i++)
		repeat_permit_ends(&r->permit[owner][i]);
}

static void ask_of_permits(struct sim_client *c, unsigned owner)
{
	struct repeating *r = &c->repeats;

	if (stream_chance(&r->stream, 30))
		ask_release(c, REPEAT_TOO_MANY_PERMITS, owner, r->permits[owner] + 1);
	else if (r->permits[owner] > 0 && stream_chance(&r->stream, 60))
		ask_release(c, REPEAT_RELEASE, owner, r->permits[owner] - 1);
	else
		ask_acquire(c, owner);
}

/* What is vague is given back first. */
static bool asks_what_is_vague(struct sim_client *c)
{
	struct repeating *r = &c->repeats;

	for (unsigned owner = 0; owner < REPEAT_OWNERS; owner++) {
		for (int64_t name = 0; name < REPEAT_NAMES; name++)
			if (r->hold[owner][name].vague) {
				ask_unlock(c, owner, name, 0);
				return true;
			}
		if (r->vague[owner]) {
			ask_release(c, REPEAT_RELEASE, owner, 0);
			return true;
		}
	}
	return false;
}

static void repeater_asks(struct sim_client *c)
{
	struct repeating *r = &c->repeats;
	unsigned owner = (unsigned)stream_range(&r->stream, 0, REPEAT_OWNERS - 1);
	int64_t name = stream_range(&r->stream, 0, REPEAT_NAMES - 1), what = stream_range(&r->stream, 0, 99);
	const struct repeat_hold *h = &r->hold[owner][name];

	if (asks_what_is_vague(c))
		;
	else if (what < 20 && !c->world->plan->stranger) /* where the set of servers changes a queue may have another home */
		repeat_ask_job(c);
	else if (what < 35)
		ask_of_permits(c, owner);
	else if (what < 50)
		ask_whether(c, owner, name);
	else if (what < 60)
		ask_group(c, owner, name);
	else if (what < 82 && h->count > 0)
		ask_unlock(c, owner, name, stream_range(&r->stream, 0, h->count - 1));
	else
		ask_lock(c, owner, name);
	repeater_sends(c);
}

/* --- when ------------------------------------------------------------------------------------------------------------ */

/* What is under way is lost, both ways. Between two hosts the daemon may notice late. */
static void repeater_is_cut(struct sim_client *c)
{
	struct repeating *r = &c->repeats;

	bool late = c->remote && stream_chance(&r->stream, 30);

	r->ask.cut = false;
	c->conn->silent = true;
	conn_cut(c->conn, c->remote ? GONE_RESET : GONE_OVERFLOW, c->world->now + (late ? stream_skewed(&r->stream, MSEC, 300 * MSEC) : 0));
	client_lost_conn(c);
}

/* Of several requests about one name and owner it sends the last one alone: it may have given up. */
static bool repeater_gives_up(struct sim_client *c)
{
	struct repeating *r = &c->repeats;
	const struct repeat_ask *a = &r->ask;

	if (a->sent == 0 || a->wait_ms == 0 || a->what == REPEAT_TAKE || !stream_chance(&r->stream, 15))
		return false;
	for (int64_t name = 0; name < REPEAT_NAMES; name++)
		if (a->group >> name & 1)
			r->hold[a->owner][name].vague = true;
	if (a->what == REPEAT_ACQUIRE)
		r->vague[a->owner] = true;
	return asks_what_is_vague(c);
}

static void repeater_goes_on(struct sim_client *c)
{
	struct repeating *r = &c->repeats;
	struct repeat_ask *a = &r->ask;

	if (r->conn != c->conn) {
		repeater_gives_up(c);
		repeater_sends(c);
	} else if (a->cut) {
		repeater_is_cut(c);
		repeater_wakes(c, AGAIN_US);
	} else if (a->again || (a->wait_ms > 0 && a->what != REPEAT_TAKE && stream_chance(&r->stream, 5))) {
		repeater_sends(c); /* beside the first, which waits */
	} else {
		repeater_wakes(c, AGAIN_US);
	}
}

void repeater_fired(struct sim_client *c)
{
	struct world *w = c->world;
	struct repeating *r = &c->repeats;
	bool ready = c->conn && !c->conn->left && c->state == CLIENT_RUNNING && c->secret[0] && !resumes(c);

	if (w->now > w->plan->length_us + settle_us(w->plan) - SEC)
		return;
	if (ready && strcmp(r->secret, c->secret) != 0)
		repeater_begins_anew(c);
	if (!ready)
		repeater_wakes(c, AGAIN_US);
	else if (r->ask.open)
		repeater_goes_on(c);
	else
		repeater_asks(c);
}

void repeater_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (!p->cuts || c->index >= REPEATERS)
		return;
	stream_init(&c->repeats.stream, (uint64_t)p->seed, DRAW_REPEATS, c->index);
	world_at(c->world, &c->repeats.timer, AT_REPEATER, p->warm_us + stream_range(&c->repeats.stream, 0, PAUSE_US));
}
