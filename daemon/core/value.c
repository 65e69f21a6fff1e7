/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/value.h"

#include "proto/decimal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECRET_N 32

void value_make(struct core *core, uint64_t number, struct lease_value *ret_value)
{
	ret_value->number = number;
	ret_value->secret[0] = rng_next(&core->rng);
	ret_value->secret[1] = rng_next(&core->rng);
}

/* Written from its end. */
struct span value_in_text(struct core *core, const struct lease_value *v)
{
	char *room = arena_reserve(&core->out->arena, VALUE_MAX), *end = room + VALUE_MAX, *at = end - SECRET_N;

	_Static_assert(sizeof(core->value_head) + DECIMAL_MAX + 1 + SECRET_N <= VALUE_MAX, "there is room for the longest value");
	hex_write(v->secret[0], at);
	hex_write(v->secret[1], at + SECRET_N / 2);
	*--at = ':';
	at = decimal_write(at, v->number);
	memcpy(at - sizeof(core->value_head), core->value_head, sizeof(core->value_head)); /* a constant size: a few stores, not a call */
	at -= core->value_head_n;
	arena_commit(&core->out->arena, VALUE_MAX);
	return (struct span){at, (size_t)(end - at)};
}

struct span stamp_in_text(struct core *core, const struct stamp *s)
{
	char *text = arena_reserve(&core->out->arena, VALUE_MAX);
	int n = snprintf(text, VALUE_MAX, "%016" PRId64 ":%s:%" PRIu64, s->us, core->daemon_id, s->sequence);

	assert(n > 0 && n < VALUE_MAX);
	arena_commit(&core->out->arena, (size_t)n + 1);
	return (struct span){text, (size_t)n};
}
