/* SPDX-License-Identifier: BSD-2-Clause */
/* See answer_queue.h. */
#include "daemon/main/answer_queue.h"

#include "daemon/base/mem.h"

#include <string.h>

#define PROBE_TEXTS 8

static void probe_texts(struct probe *p, struct span *ret_text[PROBE_TEXTS])
{
	struct span *text[PROBE_TEXTS] = {&p->marker, &p->run_id, &p->replid, &p->version, &p->role, &p->policy, &p->refusal, &p->called};

	memcpy(ret_text, text, sizeof(text));
}

static void text_keep(struct span *text)
{
	text->p = mem_copy(text->p, text->n);
}

static void text_free(struct span text)
{
	mem_free((void *)(uintptr_t)text.p);
}

static const struct probe *probe_copy(const struct probe *of)
{
	struct span *text[PROBE_TEXTS];
	struct probe *p;

	if (!of)
		return NULL;
	p = mem_alloc(sizeof(*p));
	*p = *of;
	probe_texts(p, text);
	for (unsigned i = 0; i < PROBE_TEXTS; i++)
		text_keep(text[i]);
	return p;
}

static void probe_free(const struct probe *of)
{
	struct probe *p = (struct probe *)(uintptr_t)of;
	struct span *text[PROBE_TEXTS];

	if (!p)
		return;
	probe_texts(p, text);
	for (unsigned i = 0; i < PROBE_TEXTS; i++)
		text_free(*text[i]);
	mem_free(p);
}

static void answer_queue_make_room(struct answer_queue *q)
{
	if (q->first > q->cap / 2) {
		memmove(q->event, q->event + q->first, (q->end - q->first) * sizeof(*q->event));
		q->end -= q->first;
		q->first = 0;
		return;
	}
	q->cap = q->cap ? 2 * q->cap : 256;
	q->event = mem_grow(q->event, q->cap, sizeof(*q->event));
}

static void answer_keep(struct answer *a)
{
	text_keep(&a->found);
	text_keep(&a->text);
	a->probe = probe_copy(a->probe);
}

static bool is_of_connection(const struct event *e)
{
	return e->kind == EVENT_NODE_UP || e->kind == EVENT_NODE_DOWN;
}

void answer_queue_add(struct answer_queue *q, const struct event *e)
{
	struct event *copy;

	if (q->end == q->cap)
		answer_queue_make_room(q);
	copy = &q->event[q->end++];
	*copy = *e;
	if (e->kind == EVENT_ANSWER) {
		answer_keep(&copy->answer);
		return;
	}
	text_keep(&copy->node.reason);
	text_keep(&copy->node.address);
	q->news[e->node.index] += is_of_connection(e);
}

void answer_queue_drop_first(struct answer_queue *q)
{
	const struct event *e = &q->event[q->first++];

	if (e->kind == EVENT_ANSWER) {
		text_free(e->answer.found);
		text_free(e->answer.text);
		probe_free(e->answer.probe);
	} else {
		text_free(e->node.reason);
		text_free(e->node.address);
		q->news[e->node.index] -= is_of_connection(e);
	}
	if (q->first == q->end)
		q->first = q->end = 0;
}

void answer_queue_release(struct answer_queue *q)
{
	while (!answer_queue_is_empty(q))
		answer_queue_drop_first(q);
	mem_free(q->event);
	*q = (struct answer_queue){0};
}
