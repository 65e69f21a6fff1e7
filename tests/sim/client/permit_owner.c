/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Permits of several owners in one session: an owner has its own, and what is asked for in the name of another one changes nothing. A RELEASE that names an
 * owner alone gives back the permit that this owner was granted last: so the client asks as often as the owner has some, and gives up all of them.
 */
#include "tests/sim/world/world.h"

#define OWNERS 3 /* 0: none is named */

int64_t permit_owner_draw(struct sim_client *c)
{
	return c->world->plan->owners ? stream_range(&c->permits.owners, 0, OWNERS - 1) : 0;
}

const char *permit_owner_field(int64_t owner)
{
	static const char *const field[OWNERS] = {"", " owner=1", " owner=2"};

	return field[owner];
}

/* By the fence as well, where that may be said: the other owner may be granted this slot before this is read. */
static void say_as_another(struct sim_client *c, const struct seating *s)
{
	static const char *const verb[] = {"CHECK", "EXTEND", "RELEASE"};
	int64_t what = stream_range(&c->permits.owners, 0, 2), another = s->owner == 1 ? 2 : 1;
	char fence[32] = "";
	struct request_sim *q;

	if (what == 2)
		snprintf(fence, sizeof(fence), " fence=%lld", (long long)s->fence);
	q = client_ask(c, ASK_PERMIT, NULL, "%s p%lld permit=%lld%s%s", verb[what], (long long)s->name, (long long)s->slot, permit_owner_field(another),
	               fence);
	if (!q)
		return;
	q->name = s->name;
	q->fence = s->fence;
	q->misowned = true;
}

static void say_release_last(struct sim_client *c, int64_t name, int64_t owner)
{
	for (unsigned i = 0; i < SEATINGS; i++) {
		struct seating *s = &c->permits.has[i];

		if (!s->live || s->name != name || s->owner != owner)
			continue;
		s->asked = true;
		permitter_give_up(s);
		client_ask(c, ASK_PERMIT, NULL, "RELEASE p%lld%s", (long long)name, permit_owner_field(owner));
	}
}

static bool acquires(const struct sim_client *c)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q->ask == ASK_PERMIT && q->locks)
			return true;
	return false;
}

bool permit_owner_says(struct sim_client *c, const struct seating *s)
{
	if (!c->world->plan->owners || !stream_chance(&c->permits.owners, 25))
		return false;
	if (stream_chance(&c->permits.owners, 60))
		say_as_another(c, s);
	else if (!acquires(c))
		say_release_last(c, s->name, s->owner);
	return true;
}

void permit_owner_meets(struct sim_client *c)
{
	for (int64_t owner = 1; c->world->plan->owners && owner < OWNERS; owner++)
		for (int64_t i = 0; i < SEMAPHORES * SEATINGS; i++)
			client_ask(c, ASK_PERMIT, NULL, "RELEASE p%lld%s", (long long)i % SEMAPHORES, permit_owner_field(owner));
}
