/* SPDX-License-Identifier: BSD-2-Clause */
/* See unheard.h. */
#include "daemon/main/unheard.h"

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

static void unheard_make_room(struct unheard *u)
{
	if (u->first > u->cap / 2) {
		memmove(u->answer, u->answer + u->first, (u->end - u->first) * sizeof(*u->answer));
		u->end -= u->first;
		u->first = 0;
		return;
	}
	u->cap = u->cap ? 2 * u->cap : 256;
	u->answer = mem_grow(u->answer, u->cap, sizeof(*u->answer));
}

void unheard_add(struct unheard *u, const struct answer *a)
{
	struct answer *copy;

	if (u->end == u->cap)
		unheard_make_room(u);
	copy = &u->answer[u->end++];
	*copy = *a;
	text_keep(&copy->found);
	text_keep(&copy->text);
	copy->probe = probe_copy(a->probe);
}

void unheard_drop_first(struct unheard *u)
{
	const struct answer *a = &u->answer[u->first++];

	text_free(a->found);
	text_free(a->text);
	probe_free(a->probe);
	if (u->first == u->end)
		u->first = u->end = 0;
}

void unheard_release(struct unheard *u)
{
	while (!unheard_is_empty(u))
		unheard_drop_first(u);
	mem_free(u->answer);
	*u = (struct unheard){0};
}
