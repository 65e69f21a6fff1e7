/* SPDX-License-Identifier: BSD-2-Clause */
/* Events into the service, its calls into the store, the answers back as events. Nothing here decides anything. */
#include "tests/world.h"

#include "daemon/base/mem.h"

#include <stdlib.h>

static const struct core_conf world_conf = {
	.nodes = 1,
	.label = {"memory"},
	.store = "memory",
	.set = "memory",
	.generation = 1,
	.host = "world",
	.seed = {1, 2},
	.trust_first_start = true,
	.timeout_us = 50 * MSEC,
	.lease_us = 10 * SEC,
	.min_lease_us = 100 * MSEC,
	.max_lease_us = 30 * SEC,
	.max_grace_us = 60 * SEC,
	.skew_us = 30 * SEC,
	.limits = {.locks = 1024, .waiting = 256, .name = 512, .mistakes = 100, .line = 8192},
};

void world_init(struct world *w)
{
	const struct memory_conf store = {
		.seed = {3, 4}, .epoch_us = WORLD_WALL_US, .skew_us = world_conf.skew_us, .run_id = "world"};

	*w = (struct world){.conf = world_conf, .now = {SEC}};
	w->service = service_new(&w->conf);
	w->store = memory_new(&store);
	effects_init(&w->effects);
	buf_init(&w->journal);
	TAILQ_INIT(&w->held);
}

/* Nobody is there any more to learn their outcome. */
static void held_drop(struct world *w)
{
	struct held_call *h;
	struct answer answer;

	while ((h = TAILQ_FIRST(&w->held))) {
		TAILQ_REMOVE(&w->held, h, next);
		if (w->store_is_lossy)
			memory_call(w->store, &h->call, w->now, &answer);
		free(h);
	}
}

void world_release(struct world *w)
{
	w->store_is_lossy = false;
	held_drop(w);
	service_free(w->service);
	memory_free(w->store);
	effects_release(&w->effects);
	buf_release(&w->journal);
}

void world_journal(struct world *w, struct span record)
{
	uint32_t n = (uint32_t)record.n;

	buf_append(&w->journal, &n, sizeof(n));
	buf_append(&w->journal, record.p, record.n);
}

static int world_tell(struct world *w, struct event *event)
{
	event->now = w->now;
	event->wall_us = WORLD_WALL_US + w->now.us;
	return service_step(w->service, event, &w->effects);
}

static struct span bytes_keep(char **at, struct span from)
{
	struct span kept = {*at, from.n};

	if (from.n > 0)
		memcpy(*at, from.p, from.n);
	*at += from.n;
	return kept;
}

static void call_hold(struct world *w, const struct call *call)
{
	size_t n = call->name.n + call->value.n + call->new_value.n + call->marker.n + call->new_marker.n + call->ticket.n;
	struct held_call *h = malloc(sizeof(*h) + n);
	char *at = h ? h->bytes : NULL;

	if (!h)
		abort();
	h->call = *call;
	h->until = instant_add(w->now, w->conf.timeout_us);
	h->call.name = bytes_keep(&at, call->name);
	h->call.value = bytes_keep(&at, call->value);
	h->call.new_value = bytes_keep(&at, call->new_value);
	h->call.marker = bytes_keep(&at, call->marker);
	h->call.new_marker = bytes_keep(&at, call->new_marker);
	h->call.ticket = bytes_keep(&at, call->ticket);
	TAILQ_INSERT_TAIL(&w->held, h, next);
}

/* The first of those that wait; nobody learns its outcome if it is lost. */
static void held_answer(struct world *w, bool lost)
{
	struct held_call *h = TAILQ_FIRST(&w->held);
	struct event event = {.kind = EVENT_ANSWER};

	TAILQ_REMOVE(&w->held, h, next);
	if (!lost || w->store_is_lossy)
		memory_call(w->store, &h->call, w->now, &event.answer);
	if (lost)
		event.answer = (struct answer){
			.call = h->call.id, .node = h->call.node, .class = ANSWER_UNKNOWN, .fence = -1, .text = SPAN("lost")};
	if (world_step(w, &event))
		abort();
	free(h);
}

void world_answer(struct world *w)
{
	if (!TAILQ_EMPTY(&w->held))
		held_answer(w, false);
}

void world_slow(struct world *w, bool slow)
{
	w->store_is_slow = slow;
	while (!slow && !TAILQ_EMPTY(&w->held))
		held_answer(w, false);
}

static void call_carry_out(struct world *w, const struct call *call)
{
	struct event event = {.kind = EVENT_ANSWER};

	if (w->store_is_up && (w->store_is_slow || !TAILQ_EMPTY(&w->held))) {
		call_hold(w, call);
		return;
	}
	if (w->store_is_up)
		memory_call(w->store, call, w->now, &event.answer);
	else
		event.answer = (struct answer){
			.call = call->id, .node = call->node, .class = ANSWER_REFUSED, .fence = -1, .text = SPAN("down")};
	if (world_tell(w, &event))
		abort();
}

/* Everybody reads at once; a session may have ended behind the question. */
static void await_carry_out(struct world *w, uint64_t session)
{
	struct event event = {.kind = EVENT_SENT, .session = {.id = session}};

	(void)world_tell(w, &event);
}

static void effect_carry_out(struct world *w, const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_SEND:
		if (w->sent)
			w->sent(w->context, effect->send.session, effect->send.bytes);
		break;
	case EFFECT_HANGUP:
		if (w->hung_up)
			w->hung_up(w->context, effect->hangup.session);
		break;
	case EFFECT_CALL:
		call_carry_out(w, &effect->call);
		break;
	case EFFECT_AWAIT:
		await_carry_out(w, effect->await.session);
		break;
	case EFFECT_JOURNAL:
		world_journal(w, effect->journal.record);
		break;
	case EFFECT_READ:
	case EFFECT_LOG:
		break;
	}
}

int world_step(struct world *w, struct event *event)
{
	int r = world_tell(w, event);
	size_t i;

	/* An answer adds effects, so the list may grow and move meanwhile. */
	for (i = 0; i < w->effects.count; i++) {
		struct effect effect = w->effects.item[i];

		effect_carry_out(w, &effect);
	}
	effects_reset(&w->effects);
	return r;
}

int world_open(struct world *w, uint64_t session)
{
	const struct peer peer = {
		.is_unix = true, .is_local = true, .pid = 1000 + (int64_t)session, .uid = 1000, .address = "unix"};
	struct event event = {.kind = EVENT_OPEN, .session = {.id = session, .peer = &peer}};

	return world_step(w, &event);
}

int world_line(struct world *w, uint64_t session, char *line, size_t n)
{
	struct event event = {.kind = EVENT_LINE, .session = {.id = session, .line = line, .n = n}};

	return world_step(w, &event);
}

int world_too_long(struct world *w, uint64_t session)
{
	struct event event = {.kind = EVENT_TOO_LONG, .session = {.id = session}};

	return world_step(w, &event);
}

int world_parting(struct world *w, uint64_t session)
{
	struct event event = {.kind = EVENT_PARTING, .session = {.id = session}};

	return world_step(w, &event);
}

int world_eof(struct world *w, uint64_t session)
{
	struct event event = {.kind = EVENT_EOF, .session = {.id = session}};

	return world_step(w, &event);
}

int world_gone(struct world *w, uint64_t session, enum gone how)
{
	struct event event = {.kind = EVENT_GONE, .session = {.id = session, .how = how}};

	return world_step(w, &event);
}

void world_store(struct world *w, bool up)
{
	struct event event = {.kind = up ? EVENT_NODE_UP : EVENT_NODE_DOWN, .node = {.index = 0, .reason = SPAN("test")}};

	if (w->store_is_up == up)
		return;
	w->store_is_up = up;
	while (!TAILQ_EMPTY(&w->held))
		held_answer(w, true);
	world_step(w, &event);
}

static int world_replay(struct world *w)
{
	struct event event = {.kind = EVENT_RESTORE};
	size_t at = 0;
	uint32_t n;
	int r = 0;

	for (; r == 0 && at < buf_length(&w->journal); at += n) {
		char *exact;

		memcpy(&n, buf_begin(&w->journal) + at, sizeof(n));
		at += sizeof(n);
		exact = mem_copy(buf_begin(&w->journal) + at, n); /* so that a read beyond it is seen */
		event.journal.record = (struct span){exact, n};
		r = world_step(w, &event);
		free(exact);
	}
	event.kind = EVENT_RESTORED;
	world_step(w, &event);
	return r;
}

bool world_restart(struct world *w)
{
	struct event up = {.kind = EVENT_NODE_UP};
	int r;

	service_free(w->service);
	held_drop(w);
	w->conf.seed[0]++;
	w->service = service_new(&w->conf);
	r = world_replay(w);
	buf_clear(&w->journal);
	service_snapshot(w->service, &w->effects);
	for (size_t i = 0; i < w->effects.count; i++)
		world_journal(w, w->effects.item[i].journal.record);
	effects_reset(&w->effects);
	if (w->store_is_up)
		world_step(w, &up);
	return r == 0;
}

static void world_time(struct world *w)
{
	struct event event = {.kind = EVENT_TIME};

	world_step(w, &event);
}

void world_pass(struct world *w, int64_t us)
{
	struct instant until = instant_add(w->now, us), due;
	const struct held_call *h;
	bool is_due, is_late;

	for (;;) {
		h = TAILQ_FIRST(&w->held);
		is_due = service_deadline(w->service, &due) && !instant_before(until, due);
		is_late = h && !instant_before(until, h->until) && (!is_due || instant_before(h->until, due));
		if (!is_due && !is_late)
			break;
		w->now = instant_max(w->now, is_late ? h->until : due);
		if (is_late)
			held_answer(w, true);
		else
			world_time(w);
	}
	w->now = until;
	world_time(w);
}

void world_settle(struct world *w)
{
	int turn;

	world_store(w, true);
	for (turn = 0; turn < 1000 && service_metrics(w->service)->value[METRIC_NODES_JOINED] == 0; turn++)
		world_pass(w, 100 * MSEC);
}
