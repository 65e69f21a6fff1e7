/* SPDX-License-Identifier: BSD-2-Clause */
/* See answers.h. */
#include "tests/unit/answers.h"
#include "daemon/base/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static void text_keep(struct span from, char *to, size_t size)
{
	ck_assert_uint_lt(from.n, size);
	if (from.n)
		memcpy(to, from.p, from.n);
	to[from.n] = 0;
}

static struct told *answers_grow(struct answers *a)
{
	if (a->count == a->cap) {
		a->cap = a->cap ? 2 * a->cap : 64;
		a->item = mem_grow(a->item, a->cap, sizeof(*a->item));
	}
	a->item[a->count] = (struct told){0};
	return &a->item[a->count++];
}

void answers_add(void *answers, const struct answer *answer)
{
	struct answers *a = answers;
	struct told *t;

	ck_assert_msg(a->many || !answers_find(a, answer->call), "call %llu is answered twice", (unsigned long long)answer->call);
	t = answers_grow(a);
	t->call = answer->call;
	t->node = answer->node;
	t->class = answer->class;
	t->code = answer->code;
	t->server_us = answer->server_us;
	t->fence = answer->fence;
	t->pttl_ms = answer->pttl_ms;
	text_keep(answer->holder, t->holder, sizeof(t->holder));
	text_keep(answer->text, t->text, sizeof(t->text));
	t->probed = answer->probe != NULL;
	if (t->probed) {
		text_keep(answer->probe->marker, t->marker, sizeof(t->marker));
		text_keep(answer->probe->run_id, t->run_id, sizeof(t->run_id));
		text_keep(answer->probe->role, t->role, sizeof(t->role));
	}
}

const struct told *answers_find(const struct answers *a, uint64_t call)
{
	unsigned i;

	for (i = 0; i < a->count; i++) {
		if (a->item[i].call == call)
			return &a->item[i];
	}
	return NULL;
}

void answers_check(const struct answers *a, uint64_t call, enum answer_class class, char code)
{
	static const char *const names[] = {"executed", "refused", "unknown"};
	const struct told *t = answers_find(a, call);

	ck_assert_msg(t != NULL, "call %llu is not answered", (unsigned long long)call);
	ck_assert_msg(t->class == class && t->code == code, "call %llu: %s %c, text \"%s\"", (unsigned long long)call,
		      names[t->class], t->code ? t->code : '-', t->text);
}

void answers_release(struct answers *a)
{
	free(a->item);
	*a = (struct answers){0};
}
