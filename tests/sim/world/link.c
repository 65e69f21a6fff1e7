/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of a link: dialling, stalling, breaking, dialling again. */
#include "tests/sim/world/world.h"

#define PAUSE_FIRST_US     (50 * MSEC)
#define PAUSE_CAP_US       SEC
#define STEADY_US          SEC
#define CONNECT_TIMEOUT_US SEC

static struct world *world_of(const struct sim_link *l)
{
	return l->daemon->world;
}

void link_init(struct sim_link *l, struct sim_daemon *d, struct server *s)
{
	uint64_t who = d->index * NODES_MAX + s->index, seed = (uint64_t)d->world->plan->seed;

	l->daemon = d;
	l->server = s;
	stream_init(&l->stream, seed, DRAW_LINK, who);
	stream_init(&l->to, seed, DRAW_TO_NODE, who);
	stream_init(&l->from, seed, DRAW_FROM_NODE, who);
	rng_init(&l->rng, (uint64_t[2]){seed, who});
	TAILQ_INIT(&l->flights);
}

enum down { DOWN_LOST, DOWN_REFUSED, DOWN_SILENT };

/* NODE_DOWN once for each reason, as daemon/redis/node.c does. A failed dial must not move the stream of the daemon, so that later draws stay the same. */
static void link_report_down(struct sim_link *l, enum down why)
{
	static const char *const reason[] = {[DOWN_LOST] = "connection lost", [DOWN_REFUSED] = "Connection refused", [DOWN_SILENT] = "connect timed out"};
	struct event event = {.kind = EVENT_NODE_DOWN, .node = {.index = l->daemon->node_of[l->server->index], .reason = span_of(reason[why])}};
	struct stream drawn = l->daemon->stream;

	if (l->reasons_given >> why & 1 || (why != DOWN_LOST && l->daemon->state != DAEMON_RUNNING))
		return;
	l->reasons_given |= 1u << why;
	daemon_step(l->daemon, &event);
	if (why != DOWN_LOST)
		l->daemon->stream = drawn;
}

/*
 * Has not one byte of the command left? Where the way to the store is blocked, the kernel takes one command per lane, on every other connection: the others
 * have not left. Nor has anything that this pass was to send.
 */
static bool flight_is_unsent(const struct sim_link *l, const struct flight *f, bool *blocked)
{
	bool may_wait = f->state == FLIGHT_OUT && timer_is_set(&f->timer);
	bool unsent = may_wait && (f->depart > world_of(l)->now || *blocked);

	*blocked |= unsent || (may_wait && l->epoch % 2 && (world_of(l)->now < l->stalled_to || world_of(l)->now < l->lane_stalled[f->lane]));
	return unsent;
}

/* Each call of the broken connection is answered once; then the node is down. */
void link_on_broken(struct sim_link *l, uint64_t epoch)
{
	struct flight *f, *next;
	bool blocked[LANES] = {false}, unsent;
	bool steady = world_of(l)->now - l->up_since > STEADY_US;

	if (epoch != l->epoch || !l->up)
		return;
	l->up = false;
	l->broken = false;
	l->late_at = world_of(l)->now;
	subscriber_close(&l->daemon->subscriber[l->server->index]);
	if (steady)
		backoff_reset(&l->backoff);
	world_at(world_of(l), &l->timer, AT_LINK, world_of(l)->now + (steady ? 0 : backoff_next(&l->backoff, &l->rng)));
	for (f = TAILQ_FIRST(&l->flights); f; f = next) {
		next = TAILQ_NEXT(f, in_link);
		if (f->refused)
			continue;
		unsent = flight_is_unsent(l, f, &blocked[f->lane]);
		for (unsigned i = 0; i < f->count; i++)
			flight_deliver(f, i, unsent ? ANSWER_REFUSED : ANSWER_UNKNOWN, "connection lost");
		next = TAILQ_NEXT(f, in_link);
		if (unsent)
			flight_unsend(l, f);
		else
			flight_abandon(l, f);
	}
	link_report_down(l, DOWN_LOST);
	tickets_unlinked(l->daemon, l->server->index);
}

void link_break(struct sim_link *l)
{
	if (!daemon_is_up(l->daemon) || !l->up || l->broken)
		return;
	l->broken = true;
	heap_cancel(&world_of(l)->heap, &l->watch);
	world_note(world_of(l), 1, l->epoch, "d%u-n%u breaks", l->daemon->index, l->server->index);
	daemon_arrive(l->daemon, ARRIVAL_BROKEN, l, l->epoch);
}

/* The connection of the process before a restart may have ended without being seen to. */
static void link_fail_to_dial(struct sim_link *l, int64_t after)
{
	tickets_unlinked(l->daemon, l->server->index);
	world_at(world_of(l), &l->timer, AT_LINK, world_of(l)->now + after + backoff_next(&l->backoff, &l->rng));
}

void link_fired(struct sim_link *l)
{
	struct world *w = world_of(l);

	if (!daemon_is_up(l->daemon) || l->up)
		return;
	if (l->daemon->state == DAEMON_STOPPED) {
		world_at(w, &l->timer, AT_LINK, l->daemon->thaw_at + 1);
		return;
	}
	if (l->server->down) {
		link_fail_to_dial(l, MSEC);
		link_report_down(l, DOWN_REFUSED);
	} else if (w->now < l->stalled_to || w->now < l->stalled_from || l->server->paused_until > w->now) {
		link_fail_to_dial(l, CONNECT_TIMEOUT_US);
		if (w->now - CONNECT_TIMEOUT_US > l->late_at)
			link_report_down(l, DOWN_SILENT); /* the previous attempt timed out */
	} else {
		l->epoch++;
		l->dialled = l->server->runs;
		memset(l->last_to, 0, sizeof(l->last_to));
		memset(l->last_from, 0, sizeof(l->last_from));
		memset(l->lane_stalled, 0, sizeof(l->lane_stalled));
		daemon_arrive(l->daemon, ARRIVAL_UP, l, l->epoch);
	}
}

static unsigned links_up(const struct sim_daemon *d)
{
	unsigned up = 0;

	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		up += d->link[i].up;
	return up;
}

void link_on_up(struct sim_link *l, uint64_t epoch)
{
	struct event event = {.kind = EVENT_NODE_UP, .node = {.index = l->daemon->node_of[l->server->index]}};

	if (l->up || epoch != l->epoch)
		return;
	/* By now the process after a restart has withdrawn from the others, and it does not withdraw here later. */
	if (links_up(l->daemon) > l->daemon->conf.nodes / 2)
		tickets_unlinked(l->daemon, l->server->index);
	l->up = true;
	l->broken = false;
	l->up_since = world_of(l)->now;
	if (l->met_at == INT64_MAX)
		l->met_at = l->up_since;
	l->reasons_given = 0;
	subscriber_open(&l->daemon->subscriber[l->server->index]);
	world_note(world_of(l), 2, l->epoch, "d%u-n%u up", l->daemon->index, l->server->index);
	daemon_step(l->daemon, &event);
	if (l->server->down || l->dialled != l->server->runs)
		link_break(l); /* the server died meanwhile */
}

/* Breaks the connection when its oldest command is unanswered for longer than the stall limit. */
void link_watch_fired(struct sim_link *l)
{
	struct world *w = world_of(l);
	const struct flight *oldest = TAILQ_FIRST(&l->flights);

	while (oldest && oldest->refused)
		oldest = TAILQ_NEXT(oldest, in_link);
	if (!l->up || l->broken || !oldest)
		return;
	if (l->daemon->state == DAEMON_STOPPED)
		world_at(w, &l->watch, AT_WATCH, l->daemon->thaw_at + 20 * MSEC);
	else if (w->now - oldest->depart >= LINK_STALL_US + 20 * MSEC)
		link_break(l);
	else
		world_at(w, &l->watch, AT_WATCH, oldest->depart + LINK_STALL_US + 20 * MSEC);
}

/* --- with its daemon ------------------------------------------------------------------------------------------------- */

void link_begin(struct sim_link *l)
{
	struct world *w = world_of(l);

	backoff_init(&l->backoff, PAUSE_FIRST_US, PAUSE_CAP_US);
	l->up = l->broken = false;
	l->met_at = INT64_MAX;
	l->reasons_given = 0;
	l->epoch++;
	world_at(w, &l->timer, AT_LINK, w->now + link_latency(l, &l->stream));
}

void link_end(struct sim_link *l)
{
	struct flight *f;

	l->up = l->broken = false;
	l->batch = NULL;
	if (!world_of(l)->plan->memory)
		subscriber_close(&l->daemon->subscriber[l->server->index]);
	heap_cancel(&world_of(l)->heap, &l->timer);
	heap_cancel(&world_of(l)->heap, &l->watch);
	while ((f = TAILQ_FIRST(&l->flights)))
		flight_abandon(l, f);
}
