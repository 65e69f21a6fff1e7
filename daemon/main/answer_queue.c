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
		memmove(q->answer, q->answer + q->first, (q->end - q->first) * sizeof(*q->answer));
		q->end -= q->first;
		q->first = 0;
		return;
	}
	q->cap = q->cap ? 2 * q->cap : 256;
	q->answer = mem_grow(q->answer, q->cap, sizeof(*q->answer));
}

void answer_queue_add(struct answer_queue *q, const struct answer *a)
{
	struct answer *copy;

	if (q->end == q->cap)
		answer_queue_make_room(q);
	copy = &q->answer[q->end++];
	*copy = *a;
	text_keep(&copy->found);
	text_keep(&copy->text);
	copy->probe = probe_copy(a->probe);
}

void answer_queue_drop_first(struct answer_queue *q)
{
	const struct answer *a = &q->answer[q->first++];

	text_free(a->found);
	text_free(a->text);
	probe_free(a->probe);
	if (q->first == q->end)
		q->first = q->end = 0;
}

void answer_queue_release(struct answer_queue *q)
{
	while (!answer_queue_is_empty(q))
		answer_queue_drop_first(q);
	mem_free(q->answer);
	*q = (struct answer_queue){0};
}
