/* SPDX-License-Identifier: BSD-2-Clause */
/* From PUBLISH on a node to EVENT_WOKEN or EVENT_WANTED at the daemon of the channel. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

void subscriber_init(struct subscriber *e, struct sim_daemon *d, unsigned node)
{
	e->daemon = d;
	e->node = node;
	e->from = INT64_MAX;
	stream_init(&e->stream, (uint64_t)d->world->plan->seed, DRAW_SUBSCRIBER, d->index * NODES_MAX + node);
	stream_init(&e->words, (uint64_t)d->world->plan->seed, DRAW_WORDS, d->index * NODES_MAX + node);
}

/* SUBSCRIBE takes a round trip. */
void subscriber_open(struct subscriber *e)
{
	const struct world *w = e->daemon->world;

	e->epoch++;
	e->from = w->now + 2 * w->plan->latency_us + w->plan->jitter_us;
}

void subscriber_close(struct subscriber *e)
{
	e->epoch++;
	e->from = INT64_MAX;
}

/* What daemons tell each other of holders has draws of its own: it moves no other message. */
static struct stream *message_stream(struct subscriber *e, struct span message)
{
	return message.n > 0 && (message.p[0] == 'i' || message.p[0] == 'I') ? &e->words : &e->stream;
}

static void message_send(struct subscriber *e, struct span message, int64_t late_us)
{
	struct world *w = e->daemon->world;
	const struct sim_link *l = &e->daemon->link[e->node];
	struct message *m = calloc(1, sizeof(*m) + message.n);
	int64_t at = w->now + stream_skewed(message_stream(e, message), w->plan->latency_us, 2 * w->plan->latency_us + w->plan->jitter_us);

	if (!m)
		abort();
	if (w->now < l->slow_until)
		at += (at - w->now) * l->slow;
	at = at < l->stalled_from ? l->stalled_from : at;
	m->subscriber = e;
	m->epoch = e->epoch;
	m->n = message.n;
	memcpy(m->text, message.p, m->n);
	world_at(w, &m->timer, AT_MESSAGE, at + late_us);
}

static void subscriber_take(struct subscriber *e, struct span message)
{
	const struct plan *p = e->daemon->world->plan;
	struct stream *chance = message_stream(e, message);
	int64_t late = stream_chance(chance, (unsigned)p->echo_percent) ? stream_skewed(chance, MSEC, 2 * SEC) : 0;
	bool twice = stream_chance(chance, (unsigned)p->echo_percent);

	e->daemon->world->tally.published++;
	if (!stream_chance(chance, (unsigned)p->heard_percent) || e->daemon->deaf_until > e->daemon->world->now)
		return;
	message_send(e, message, late);
	if (twice)
		message_send(e, message, stream_skewed(chance, MSEC, 2 * SEC));
}

int64_t subscriber_published(void *context, struct span channel, struct span message)
{
	struct server *s = context;
	struct world *w = s->world;
	struct span prefix = SPAN("redlockd:lock:d:");
	int64_t heard = 0;

	if (!span_starts(channel, prefix))
		return 0;
	channel = (struct span){channel.p + prefix.n, channel.n - prefix.n};
	for (unsigned i = 0; i < w->plan->daemons; i++) {
		struct sim_daemon *d = &w->daemon[i];

		if (!daemon_is_up(d) || d->subscriber[s->index].from > w->now || !span_equal(channel, span_of(service_daemon_id(d->service))))
			continue;
		subscriber_take(&d->subscriber[s->index], message);
		heard++;
	}
	return heard;
}

void message_fired(struct message *m)
{
	daemon_arrive(m->subscriber->daemon, ARRIVAL_MESSAGE, m, m->epoch);
}

static struct span slot_name(struct span key, size_t cut, char out[SLOT_NAME_MAX])
{
	return (struct span){out, (size_t)snprintf(out, SLOT_NAME_MAX, "%s%.*s", SLOT_PREFIX, (int)(key.n - cut), key.p + cut)};
}

/* 'i' (asked) or 'I' (told), then a text. */
static void word_heard(struct message *m)
{
	struct sim_daemon *d = m->subscriber->daemon;
	struct event event = {.kind = m->text[0] == 'i' ? EVENT_QUESTION : EVENT_CARD, .message = {.node = d->node_of[m->subscriber->node]}};

	event.message.name = (struct span){m->text + 1, m->n - 1};
	d->world->tally.words++;
	world_note(d->world, 11, (uint64_t)event.kind, "d%u hears from n%u: %.*s", d->index, m->subscriber->node, (int)m->n, m->text);
	daemon_step(d, &event);
}

/* 'w' (woken), 'c' (wanted), 'b' (broken) or 't' (due), then the key, as daemon/redis/subscriber.c and daemon/main/pump.c read it. */
void message_heard(struct message *m)
{
	struct sim_daemon *d = m->subscriber->daemon;
	struct span prefix = SPAN("lock:"), slots = SPAN("redlockd:lock:s:"), key = {m->text + 1, m->n - 1};
	char slot[SLOT_NAME_MAX];
	static const char letters[] = "wcbt";
	static const enum event_kind kinds[] = {EVENT_WOKEN, EVENT_WANTED, EVENT_BROKEN, EVENT_DUE};
	const char *letter = m->n > 1 ? strchr(letters, m->text[0]) : NULL;
	struct event event = {.kind = kinds[letter ? letter - letters : 0], .message = {.node = d->node_of[m->subscriber->node]}};

	if (m->epoch == m->subscriber->epoch && m->n > 1 && (m->text[0] == 'i' || m->text[0] == 'I')) {
		word_heard(m);
	} else if (m->epoch == m->subscriber->epoch && letter && (span_starts(key, prefix) || span_starts(key, slots))) {
		event.message.name = (struct span){key.p + prefix.n, key.n - prefix.n};
		if (!span_starts(key, prefix))
			event.message.name = slot_name(key, slots.n, slot);
		d->world->tally.heard++;
		world_note(d->world, 11, (uint64_t)event.kind, "d%u hears from n%u: %c %.*s", d->index, m->subscriber->node, m->text[0],
			   (int)event.message.name.n, event.message.name.p);
		if (event.kind == EVENT_WANTED)
			handover_wanted(d, event.message.name);
		daemon_step(d, &event);
	}
	free(m);
}
