/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/event/value.h"

#include "proto/decimal.h"

#include <string.h>

#define SECRET_N 32
#define SINCE_N  12 /* the first digits of the secret */
#define KEPT     (UINT64_C(1) << 47) /* the highest bit of these digits: no moment sets it for thousands of years */
#define AHEAD_MOST_US (5 * SEC) /* clocks of used stores differ by less */
#define HELD_MOST_US  (INT64_C(365) * 86400 * SEC)
#define INSTANT_DIGITS 16
#define LIMIT_N  6 /* "~1024"; decimal_write() may write one more pair of digits */

void value_make(struct core *core, uint64_t number, int64_t since_us, struct lease_value *ret_value)
{
	ret_value->number = number;
	ret_value->limit = 0;
	ret_value->secret[0] = rng_next(&core->rng) << 4 * SINCE_N | ((uint64_t)(since_us / MSEC) & ((UINT64_C(1) << 4 * SINCE_N) - 1));
	ret_value->secret[1] = rng_next(&core->rng);
}

void value_mark_kept(struct lease_value *v)
{
	v->secret[0] |= KEPT;
}

static int64_t digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The digits of the moment, as a number; -1: there is none. */
static int64_t since_of(struct span public)
{
	const char *id = public.n > 0 ? memchr(public.p, ':', public.n) : NULL;
	const char *number = id ? memchr(id + 1, ':', (size_t)(public.p + public.n - id - 1)) : NULL;
	int64_t since = 0;

	if (!number || public.p + public.n - number != 1 + SINCE_N)
		return -1;
	for (unsigned i = SINCE_N; i > 0; i--) {
		if (digit_of(number[i]) < 0)
			return -1;
		since = since * 16 + digit_of(number[i]);
	}
	return since;
}

bool value_is_kept(struct span public)
{
	int64_t since = since_of(public);

	return since >= 0 && ((uint64_t)since & KEPT);
}

int64_t value_held_us(struct span public, int64_t now_us)
{
	int64_t since = since_of(public), held_us;

	if (since < 0)
		return -1;
	held_us = now_us - (int64_t)((uint64_t)since & ~KEPT) * MSEC;
	if (held_us < -AHEAD_MOST_US || held_us > HELD_MOST_US)
		return -1;
	return held_us > 0 ? held_us : 0;
}

/* Writes "<daemon-id>:" before `at`, where there is room for the longest. Returns its first character. */
static char *head_write(const struct core *core, char *at)
{
	memcpy(at - sizeof(core->value_head), core->value_head, sizeof(core->value_head)); /* a constant size: a few stores, not a call */
	return at - core->value_head_n;
}

/* Written from its end. */
struct span value_in_text(struct core *core, const struct lease_value *v)
{
	char *room = arena_reserve(&core->out->arena, VALUE_MAX), *end = room + VALUE_MAX, *at = end - SECRET_N;

	_Static_assert(sizeof(core->value_head) + DECIMAL_MAX + LIMIT_N + 1 + SECRET_N <= VALUE_MAX, "there is room for the longest value");
	hex_write(v->secret[0], at);
	hex_write(v->secret[1], at + SECRET_N / 2);
	*--at = ':';
	if (v->limit) {
		at = decimal_write(at, v->limit);
		*--at = '~';
	}
	at = head_write(core, decimal_write(at, v->number));
	arena_commit(&core->out->arena, VALUE_MAX);
	return (struct span){at, (size_t)(end - at)};
}

/* Half of a secret, as hex_write() writes it. */
static bool take_hex(struct span *rest, uint64_t *ret)
{
	*ret = 0;
	if (rest->n < SECRET_N / 2)
		return false;
	for (unsigned i = SECRET_N / 2; i-- > 0;) {
		if (digit_of(rest->p[i]) < 0)
			return false;
		*ret = *ret << 4 | (uint64_t)digit_of(rest->p[i]);
	}
	*rest = (struct span){rest->p + SECRET_N / 2, rest->n - SECRET_N / 2};
	return true;
}

static uint64_t take_decimal(struct span *rest)
{
	uint64_t n = 0;

	for (; rest->n > 0 && *rest->p >= '0' && *rest->p <= '9'; rest->p++, rest->n--)
		n = n * 10 + (uint64_t)(*rest->p - '0');
	return n;
}

bool value_read(const struct core *core, struct span text, struct lease_value *ret_value)
{
	struct span rest = text, head = {core->value_head + sizeof(core->value_head) - core->value_head_n, core->value_head_n};

	*ret_value = (struct lease_value){0};
	if (!span_starts(text, head))
		return false;
	rest = (struct span){text.p + head.n, text.n - head.n};
	ret_value->number = take_decimal(&rest);
	if (span_starts(rest, SPAN("~"))) {
		rest = (struct span){rest.p + 1, rest.n - 1};
		ret_value->limit = (unsigned)take_decimal(&rest);
	}
	if (!span_starts(rest, SPAN(":")))
		return false;
	rest = (struct span){rest.p + 1, rest.n - 1};
	return take_hex(&rest, &ret_value->secret[0]) && take_hex(&rest, &ret_value->secret[1]) && rest.n == 0;
}

unsigned value_limit(struct span holder)
{
	const char *colon = memchr(holder.p, ':', holder.n), *mark = colon ? memchr(colon, '~', (size_t)(holder.p + holder.n - colon)) : NULL;
	unsigned limit = 0;

	if (!mark)
		return 0;
	for (const char *p = mark + 1; p < holder.p + holder.n && *p >= '0' && *p <= '9' && limit < 100000; p++)
		limit = limit * 10 + (unsigned)(*p - '0');
	return limit;
}

/* Writes at least INSTANT_DIGITS characters before `end`, including a sign: so moments of the same length compare like their texts. */
static char *instant_write(char *end, int64_t us)
{
	char *at = decimal_write(end, us < 0 ? 0 - (uint64_t)us : (uint64_t)us);

	while (end - at < INSTANT_DIGITS - (us < 0))
		*--at = '0';
	if (us < 0)
		*--at = '-';
	return at;
}

static char *kind_write(char *end, const struct stamp *s)
{
	if (s->kind == STAMP_WRITER)
		return end;
	if (s->writer_us)
		end = instant_write(end, s->writer_us);
	*--end = 's';
	*--end = ':';
	return end;
}

/* Written from its end. */
struct span stamp_in_text(struct core *core, const struct stamp *s)
{
	char *room = arena_reserve(&core->out->arena, VALUE_MAX), *end = room + VALUE_MAX, *at = decimal_write(kind_write(end, s), s->sequence);

	_Static_assert(DECIMAL_MAX + 1 + sizeof(core->value_head) + DECIMAL_MAX + 2 + DECIMAL_MAX <= VALUE_MAX, "there is room for the longest stamp");
	at = head_write(core, at);
	*--at = ':';
	at = instant_write(at, s->us);
	arena_commit(&core->out->arena, VALUE_MAX);
	return (struct span){at, (size_t)(end - at)};
}
