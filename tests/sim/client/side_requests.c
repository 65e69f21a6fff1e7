/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients ask beside their jobs in some worlds: queries, mistakes, and names that no invariant watches, so that tables grow while others are at work. Each
 * line gets one reply, and none may harm anybody. Now and then the daemon's configuration is loaded anew. The plan sets how often (chatter_ms).
 */
#include "tests/sim/world/world.h"

#define TOO_LONG  9000
#define SHOWS     60  /* per cent of the fixed ones, where daemons ask each other who has a name */
#define RELOADS   3   /* per cent of all that this file does */
#define RELOADS_MANY 40 /* where they change leases */
#define NAMES_SEEN 60  /* the names x0 … */

static const char *const fixed[] = {
	"LIST", "LIST locks limit=2", "LIST locks prefix=k after=k1", "LIST locks prefix=x limit=3", "LIST sessions", "LIST sessions after=3 limit=1",
	"LIST sessions prefix=c", "LIST nodes", "LIST bogus", "LIST limit=99999", "HELP", "HELP LOCK", "HELP FROB", "STATS", "PING", "SHOW k0", "SHOW k1",
	"SHOW \"a b\\x00\"", "SHOW 'it is'", "SHOW", "FROB", "LOK k0", "name=k0", "LOCK", "LOCK k0 k1", "LOCK k0 tt=3", "LOCK k0 frobnicate=3",
	"LOCK k0 ttl=1ms", "LOCK k0 ttl=zzz", "LOCK k0 ttl=1h", "LOCK k0 delay=1h", "LOCK k0 wait=1s wait=2s", "LOCK k0 mode=share", "LOCK k0 mode=any",
	"LOCK \"\"", "LOCK \"k0", "LOCK \"k0\"x", "LOCK \"k\\q\"", "LOCK 'k0", "LOCK k0 wait=99999999999999999999", "UNLOCK nothing",
	"UNLOCK k0 keep=1h owner=nobody", "EXTEND nothing", "CHECK nothing owner=me", "CANCEL x", "CANCEL @none", "HELLO 2", "HELLO 1 heartbeat=1ms",
	"HELLO 1 grace=1h", "RESUME 1 2", "RESUME x 2", "RESUME 1234567890123456789 2", "@", "@a!b PING", "PING surplus",
};

static void say_fixed(struct sim_client *c)
{
	const char *text = fixed[stream_range(&c->side, 0, (int64_t)(sizeof(fixed) / sizeof(fixed[0])) - 1)];
	bool all = seed_is_spread((uint64_t)c->world->plan->seed, SPREAD_PRIORITIES);

	if (c->world->plan->inquires && stream_chance(&c->side, SHOWS))
		text = stream_chance(&c->side, 50) ? "SHOW k0" : "SHOW k1";
	client_ask(c, ASK_OTHER, NULL, "%s%s", text, strncmp(text, "SHOW k", 6) != 0 ? "" : all ? " all=yes" : " all=no");
}

/* The client holds the name until it happens to send UNLOCK, or its session ends. */
static void say_lock(struct sim_client *c, long long name, const char *fields, int64_t wait_ms)
{
	struct request_sim *q = client_ask(c, ASK_OTHER, NULL, "LOCK x%lld ttl=%lldms%s", name, (long long)(c->world->plan->lease_us / MSEC), fields);

	if (!q)
		return;
	q->locks = true;
	q->wait_ms = wait_ms;
}

static void say_other_name(struct sim_client *c)
{
	long long name = stream_range(&c->side, 0, NAMES_SEEN - 1);

	switch (stream_range(&c->side, 0, 8)) {
	case 0:
	case 5:
	case 6:
	case 7:
		client_ask(c, ASK_OTHER, NULL, "UNLOCK x%lld", name);
		break;
	case 1:
		say_lock(c, name, " note=\"chat\" wait=20.5ms", 21);
		break;
	case 2:
		client_ask(c, ASK_OTHER, NULL, "EXTEND x%lld", name);
		break;
	case 3:
		client_ask(c, ASK_OTHER, NULL, "SHOW x%lld", name);
		break;
	default:
		say_lock(c, name, "", 0);
		break;
	}
}

static void reload_more(struct sim_daemon *d, struct stream *s)
{
	int64_t longest = d->conf.max_lease_us / MSEC, usual = d->world->plan->lease_us / MSEC, least = d->conf.min_lease_us / MSEC;

	if (stream_chance(s, 50)) {
		least = stream_skewed(s, MIN_LEASE_MS, stream_chance(s, 80) && usual < longest ? usual : longest);
		d->conf.min_lease_us = least * MSEC;
	}
	d->conf.lease_us = stream_range(s, least, longest) * MSEC;
	d->conf.limits.detached = stream_chance(s, 70) ? (uint64_t)stream_skewed(s, 1, 8) : 0;
	account_reloaded(d);
}

static void reload(struct sim_client *c)
{
	struct sim_daemon *d = c->daemon;

	if (!daemon_is_up(d))
		return;
	d->conf.limits.locks = (uint64_t)stream_range(&c->side, 8, 1024);
	d->conf.limits.waiting = (uint64_t)stream_range(&c->side, 4, 256);
	d->conf.limits.mistakes = (uint64_t)stream_range(&c->side, 3, 100);
	d->conf.listed = (unsigned)stream_range(&c->side, 8, 64); /* LIST is answered in slices of so many entries */
	if (c->world->plan->reloads)
		reload_more(d, &c->side);
	world_note(c->world, 13, d->conf.limits.locks, "d%u loads its configuration anew: min_lease %lldms, lease %lldms, limits.detached %llu", d->index,
		   (long long)(d->conf.min_lease_us / MSEC), (long long)(d->conf.lease_us / MSEC), (unsigned long long)d->conf.limits.detached);
	service_reload(d->service, &d->conf);
}

void side_requests_fired(struct sim_client *c)
{
	struct world *w = c->world;

	if (w->plan->storm) {
		storm_fired(c);
		return;
	}
	if (w->plan->rolls && !w->plan->chatter_ms) {
		roll_fired(c);
		return;
	}
	if (w->plan->breaks_ms && !w->plan->chatter_ms) {
		breaker_fired(c);
		return;
	}
	if (w->plan->notes && !w->plan->chatter_ms) {
		namer_fired(c);
		return;
	}
	if (w->now > w->plan->length_us)
		return; /* in the healed world the bounds are tight */
	if (stream_chance(&c->side, w->plan->reloads ? RELOADS_MANY : RELOADS))
		reload(c);
	else if (stream_chance(&c->side, 2))
		client_ask(c, ASK_OTHER, NULL, "PING %*s", TOO_LONG, "x");
	else if (stream_chance(&c->side, 50))
		say_other_name(c);
	else
		say_fixed(c);
	world_at(w, &c->side_timer, AT_SIDE, w->now + stream_skewed(&c->side, MSEC, 2 * w->plan->chatter_ms * MSEC));
}

void side_requests_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	if (!p->storm && !p->chatter_ms && p->rolls)
		roll_begin(c);
	else if (!p->storm && !p->chatter_ms && p->breaks_ms)
		breaker_begin(c);
	else if (!p->storm && !p->chatter_ms && p->notes)
		namer_begin(c);
	if (storm_begin(c) || !p->chatter_ms || c->index >= CLIENTS_COMMON)
		return; /* only some of a crowd: the LISTs of hundreds would take long */
	stream_init(&c->side, (uint64_t)p->seed, DRAW_SIDE_REQUESTS, c->index);
	world_at(c->world, &c->side_timer, AT_SIDE, p->warm_us + stream_range(&c->side, 0, p->chatter_ms * MSEC));
}
