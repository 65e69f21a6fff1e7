/* SPDX-License-Identifier: BSD-2-Clause */
/* Read, think, write: each step takes time, and the client may be stopped between them. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

enum access_step { ACCESS_READ, ACCESS_THINK, ACCESS_WRITE };

struct access {
	struct timer timer;
	struct sim_client *client;
	struct hold *hold;
	struct resource *resource;
	enum access_step step;
	int64_t name, token, value;
	struct stream stream;
};

static void access_next(struct world *w, struct access *a, enum access_step step)
{
	a->step = step;
	world_at(w, &a->timer, AT_ACCESS, w->now + stream_skewed(&a->stream, 50, 20 * MSEC));
}

void access_drop(struct timer *t)
{
	free(container_of(t, struct access, timer));
}

static void access_over(struct access *a)
{
	a->hold->acting = false;
	a->hold->uses--;
	free(a);
}

void resource_visit(struct world *w, struct task *r, int64_t token)
{
	struct access *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->client = r->client;
	a->hold = r->hold;
	a->hold->acting = true;
	a->hold->uses++;
	a->name = r->job.name;
	a->resource = &w->resource[a->name];
	a->token = token;
	stream_init(&a->stream, (uint64_t)w->plan->seed, DRAW_RESOURCE, (uint64_t)r->index * 100 + (uint64_t)r->tick);
	access_next(w, a, ACCESS_READ);
}

/* Every access, reads included, is refused with a smaller token. */
static bool resource_admits(struct resource *res, int64_t token)
{
	if (token < res->seen) {
		res->refused++;
		return false;
	}
	res->seen = token;
	return true;
}

static void access_write(struct world *w, struct access *a)
{
	struct resource *res = a->resource;

	res->counter = a->value + 1;
	res->writes++;
	world_note(w, 25, (uint64_t)res->counter, "c%u writes %s = %lld with fence %lld", a->client->index, name_of(a->name),
		   (long long)res->counter, (long long)a->token);
	if (res->counter != res->writes && w->tokens_are_safe)
		checker_fail(w, INVARIANT_S4, a->name, "%s: %lld writes, but the counter is %lld", name_of(a->name),
			     (long long)res->writes, (long long)res->counter);
}

void access_fired(struct world *w, struct timer *t)
{
	struct access *a = container_of(t, struct access, timer);

	if (a->step == ACCESS_THINK) {
		if (a->client->state == CLIENT_RUNNING)
			access_next(w, a, ACCESS_WRITE);
		else if (a->client->state == CLIENT_STALLED)
			world_at(w, &a->timer, AT_ACCESS, a->client->thaw_at + 1);
		else
			access_over(a);
		return;
	}
	if (!resource_admits(a->resource, a->token)) {
		access_over(a);
	} else if (a->step == ACCESS_READ) {
		a->value = a->resource->counter;
		access_next(w, a, ACCESS_THINK);
	} else {
		access_write(w, a);
		access_over(a);
	}
}
