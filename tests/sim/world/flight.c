/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands to a node and their replies: how long they take, in which order they arrive, and what becomes of them when the connection breaks. */
#include "daemon/base/mem.h"
#include "tests/sim/world/world.h"

#include <stddef.h>
#include <stdlib.h>

const char *call_word(enum call_kind kind)
{
	static const char *const word[] = {"PROBE", "MARK", "ACQUIRE", "EXTEND", "RELEASE", "WITHDRAW", "LOOK", "BREAK", "TABLE", "HOME", "NAMES", "TELL"};

	return word[kind];
}

static struct world *world_of(const struct sim_link *l)
{
	return l->daemon->world;
}

/* --- latency --------------------------------------------------------------------------------------------------------- */

int64_t link_latency(struct sim_link *l, struct stream *s)
{
	const struct plan *p = world_of(l)->plan;
	int64_t us = p->latency_us / 2 + stream_skewed(s, p->latency_us / 2, p->latency_us + p->jitter_us);

	return world_of(l)->now < l->slow_until ? us * l->slow : us;
}

/* A packet arrives in order, and not before the stall is over. */
static int64_t arrival(int64_t at, int64_t stalled_until, int64_t lane_until, int64_t *last)
{
	if (at < stalled_until)
		at = stalled_until;
	if (at < lane_until)
		at = lane_until;
	if (at <= *last)
		at = *last + 1;
	*last = at;
	return at;
}

/* --- commands -------------------------------------------------------------------------------------------------------- */

/* Clears all but calls and answers, which are cleared as they are added: most flights have few. */
static struct flight *flight_blank(struct world *w)
{
	struct flight *f = TAILQ_FIRST(&w->spare);

	if (f) {
		TAILQ_REMOVE(&w->spare, f, in_link);
		arena_reset(&f->arena);
	} else {
		f = mem_grow(NULL, 1, sizeof(*f));
		arena_init(&f->arena);
	}
	memset(f, 0, offsetof(struct flight, arena));
	return f;
}

static struct flight *flight_new(struct sim_link *l, int64_t depart, unsigned lane)
{
	struct flight *f = flight_blank(world_of(l));

	f->link = l;
	f->server = l->server;
	f->daemon = l->daemon;
	f->run = l->daemon->run;
	f->strange = l->daemon->strange;
	f->dialled = l->dialled;
	f->depart = depart;
	f->wanted_at = world_of(l)->now;
	f->emitted = daemon_boot(l->daemon);
	f->lane = lane;
	f->refused = !l->up;
	TAILQ_INSERT_TAIL(&l->flights, f, in_link);
	return f;
}

void flight_drop(struct flight *f)
{
	struct world *w = f->server->world;

	if (f->link)
		TAILQ_REMOVE(&f->link->flights, f, in_link);
	TAILQ_INSERT_HEAD(&w->spare, f, in_link);
}

void flights_release(struct flights *spare)
{
	struct flight *f;

	while ((f = TAILQ_FIRST(spare))) {
		TAILQ_REMOVE(spare, f, in_link);
		arena_release(&f->arena);
		free(f);
	}
}

void flight_lose(struct flight *f)
{
	if (f->link)
		f->state = FLIGHT_LOST;
	else
		flight_drop(f);
}

static unsigned lane_of(const struct call *call)
{
	return call->kind == CALL_PROBE || call->kind == CALL_MARK ? 0
								   : (unsigned)(hash_bytes(call->name.p, call->name.n) % LANES);
}

static bool flight_takes(const struct flight *f, const struct call *call, unsigned lane)
{
	bool batched = call->kind != CALL_PROBE && call->kind != CALL_MARK && f->call[0].kind != CALL_PROBE &&
		       f->call[0].kind != CALL_MARK;

	return batched && f->lane == lane && f->count < FLIGHT_CALLS_MAX && span_equal(f->call[0].marker, call->marker);
}

void link_call(struct sim_link *l, const struct call *call, int64_t depart)
{
	unsigned lane = lane_of(call);
	struct call *mine;

	if (l->batch && !flight_takes(l->batch, call, lane))
		link_flush(l);
	if (!l->batch)
		l->batch = flight_new(l, depart, lane);
	mine = &l->batch->call[l->batch->count];
	*mine = *call;
	l->batch->answer[l->batch->count++] = (struct answer){0};
	span_keep(&l->batch->arena, &mine->name);
	span_keep(&l->batch->arena, &mine->value);
	span_keep(&l->batch->arena, &mine->new_value);
	span_keep(&l->batch->arena, &mine->marker);
	span_keep(&l->batch->arena, &mine->new_marker);
	span_keep(&l->batch->arena, &mine->ticket);
	if (l->daemon->store)
		store_take(l->daemon->store);
}

/* At the end of a pass the collected calls leave. Without a connection they are refused a moment later. */
void link_flush(struct sim_link *l)
{
	struct world *w = world_of(l);
	struct flight *f = l->batch;
	int64_t at;

	if (!f)
		return;
	l->batch = NULL;
	memcpy(f->sender, l->daemon->id, sizeof(f->sender));
	if (f->refused) {
		f->state = FLIGHT_BACK;
		world_at(w, &f->timer, AT_FLIGHT, f->depart);
		return;
	}
	at = arrival(f->depart + link_latency(l, &l->to), l->stalled_to, l->lane_stalled[f->lane], &l->last_to[f->lane]);
	world_at(w, &f->timer, AT_FLIGHT, at);
	if (!timer_is_set(&l->watch))
		world_at(w, &l->watch, AT_WATCH, w->now + LINK_STALL_US);
}

void flight_answered(struct flight *f, int64_t took_us)
{
	struct sim_link *l = f->link;
	struct world *w = f->server->world;

	if (!l) {
		flight_drop(f);
		return;
	}
	f->state = FLIGHT_BACK;
	world_at(w, &f->timer, AT_FLIGHT,
		 arrival(w->now + took_us + link_latency(l, &l->from), l->stalled_from, l->lane_stalled[f->lane], &l->last_from[f->lane]));
}

void flight_fired(struct flight *f)
{
	if (f->state == FLIGHT_BACK && !f->refused && f->link->broken)
		f->state = FLIGHT_LOST;
	else if (f->state == FLIGHT_BACK)
		daemon_arrive(f->daemon, ARRIVAL_REPLY, f, f->run);
	else if (daemon_sent(f->daemon, f->run, f->depart))
		server_receive(f->server, f);
	else
		flight_drop(f);
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

void flight_deliver(struct flight *f, unsigned i, enum answer_class class, const char *text)
{
	struct event event = {.kind = EVENT_ANSWER, .answer = f->answer[i]};

	if (class != ANSWER_EXECUTED)
		event.answer = (struct answer){.class = class, .unsent = class == ANSWER_REFUSED, .fence = -1, .pttl_ms = -2, .text = span_of(text)};
	event.answer.call = f->call[i].id;
	event.answer.node = f->daemon->node_of[f->server->index];
	recount_answer(f->daemon, &f->call[i], &event.answer, f->emitted);
	daemon_step(f->daemon, &event);
}

static bool flight_is_late(const struct sim_link *l, const struct flight *f)
{
	return world_of(l)->now - f->depart > world_of(l)->plan->timeout_us;
}

int64_t link_prompt_since(const struct sim_link *l)
{
	const struct flight *f;

	TAILQ_FOREACH(f, &l->flights, in_link)
	{
		if (!f->refused && flight_is_late(l, f))
			return INT64_MAX;
	}
	return l->late_at;
}

void link_on_reply(struct flight *f)
{
	if (!f->refused && flight_is_late(f->link, f))
		f->link->late_at = world_of(f->link)->now;
	TAILQ_REMOVE(&f->link->flights, f, in_link);
	f->link = NULL;
	for (unsigned i = 0; i < f->count; i++) {
		if (f->refused)
			flight_deliver(f, i, ANSWER_REFUSED, "no connection");
		else
			flight_deliver(f, i, ANSWER_EXECUTED, "");
	}
	flight_drop(f);
}

void flight_unsend(struct sim_link *l, struct flight *f)
{
	(void)stream_chance(&l->stream, (unsigned)world_of(l)->plan->ghost_percent); /* drawn in any case, so that later draws stay the same */
	heap_cancel(&world_of(l)->heap, &f->timer);
	flight_drop(f);
}

void flight_abandon(struct sim_link *l, struct flight *f)
{
	struct world *w = world_of(l);
	int64_t at = f->timer.at.us > w->now ? f->timer.at.us : w->now;
	bool runs = f->state == FLIGHT_OUT && !f->refused && timer_is_set(&f->timer) &&
		    stream_chance(&l->stream, (unsigned)w->plan->ghost_percent);

	TAILQ_REMOVE(&l->flights, f, in_link);
	f->link = NULL;
	if (f->state == FLIGHT_LOST) {
		flight_drop(f);
		return;
	}
	if (f->state == FLIGHT_OUT && !f->refused && !timer_is_set(&f->timer)) {
		if (f->server->down || stream_chance(&l->stream, 50)) {
			TAILQ_REMOVE(&f->server->backlog, f, in_backlog);
			flight_drop(f);
		}
		return; /* in the socket of a server that stands still: it will be read later */
	}
	heap_cancel(&w->heap, &f->timer);
	if (!runs || f->server->down) {
		flight_drop(f);
		return;
	}
	at += stream_skewed(&l->stream, 0, 3 * SEC);
	w->ghosts_until = at > w->ghosts_until ? at : w->ghosts_until;
	world_at(w, &f->timer, AT_FLIGHT, at);
}
