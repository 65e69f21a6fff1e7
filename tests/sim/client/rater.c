/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that use the names m0 … up, each with a rate limit of its own, beside the jobs. What the stores admit is checked in check/metered.c. */
#include "tests/sim/world/world.h"

#define RATERS 6

struct rate_terms rate_terms(const struct plan *p, int64_t name)
{
	struct rate_terms x;
	struct stream s;

	stream_init(&s, (uint64_t)p->seed, DRAW_RATES, (uint64_t)(1000 + name));
	x.limit = stream_skewed(&s, 1, 30);
	x.per_ms = stream_skewed(&s, 20, 4000);
	return x;
}

int64_t rate_name(struct span name)
{
	return name.n == 2 && name.p[0] == 'm' && name.p[1] >= '0' && name.p[1] < '0' + RATE_NAMES ? name.p[1] - '0' : -1;
}

static void rater_asks(struct sim_client *c)
{
	int64_t name = stream_range(&c->rates, 0, RATE_NAMES - 1), cost;
	struct rate_terms x = rate_terms(c->world->plan, name);
	struct request_sim *q;

	int64_t wait_ms = stream_chance(&c->rate_waits, 30) ? stream_skewed(&c->rate_waits, 1, 5000) : 0;
	char wait[32] = "";

	cost = stream_chance(&c->rates, 70) ? 1 : stream_range(&c->rates, 0, x.limit);
	if (wait_ms > 0)
		snprintf(wait, sizeof(wait), " wait=%lldms", (long long)wait_ms);
	q = client_ask(c, ASK_RATE, NULL, "RATE m%lld limit=%lld per=%lldms cost=%lld%s", (long long)name, (long long)x.limit, (long long)x.per_ms,
	               (long long)cost, wait);
	if (!q)
		return;
	q->name = name;
	q->cost = cost;
	q->wait_ms = wait_ms;
}

/* False: it waits for no use in turn. */
static bool rater_cancels(struct sim_client *c)
{
	const struct request_sim *q;

	if (!c->conn || !stream_chance(&c->rate_waits, 3))
		return false;
	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q->ask == ASK_RATE && q->wait_ms > 0) {
			client_ask(c, ASK_OTHER, NULL, "CANCEL @t%u", q->number);
			return true;
		}
	return false;
}

static void rater_errs(struct sim_client *c)
{
	static const char *const wrong[] = {"RATE m0", "RATE m0 limit=0 per=1s", "RATE m0 limit=3 per=1s cost=4", "RATE m0 limit=2000000000 per=1s", "RATE"};

	client_ask(c, ASK_OTHER, NULL, "%s", wrong[stream_range(&c->rates, 0, (int64_t)(sizeof(wrong) / sizeof(wrong[0])) - 1)]);
}

/* In turns often and seldom, so that limits are used up and windows pass. */
void rater_fired(struct sim_client *c)
{
	const struct world *w = c->world;
	int64_t most = w->now / (2 * SEC) % 2 ? 20 * MSEC : 600 * MSEC;

	if (w->now > w->plan->length_us + settle_us(w->plan) - SEC)
		return;
	if (stream_chance(&c->rates, 2))
		rater_errs(c);
	else if (!rater_cancels(c))
		rater_asks(c);
	world_at(c->world, &c->rate_timer, AT_RATER, w->now + stream_skewed(&c->rates, MSEC, most));
}

void rater_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (!p->rates || c->index >= RATERS)
		return;
	stream_init(&c->rates, (uint64_t)p->seed, DRAW_RATES, c->index);
	stream_init(&c->rate_waits, (uint64_t)p->seed, DRAW_RATE_WAITS, c->index);
	world_at(c->world, &c->rate_timer, AT_RATER, p->warm_us + stream_range(&c->rates, 0, SEC));
}
