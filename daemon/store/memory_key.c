/* SPDX-License-Identifier: BSD-2-Clause */
/* See memory_key.h. */
#include "daemon/store/memory_key.h"

#include <stdio.h>
#include <string.h>

/* --- what a store shows to others of a value that is not theirs, as long.lua and break.lua do ----------------------------- */

#define SECRET_N 32
#define SINCE_N  12

static size_t run_of(struct span s, size_t from, bool (*in)(char c))
{
	size_t i = from;

	while (i < s.n && in(s.p[i]))
		i++;
	return i - from;
}

static bool is_part(char c)
{
	return c != ':';
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

struct span shown_public(struct span value)
{
	size_t id = run_of(value, 0, is_part);
	size_t ticket = id < value.n ? run_of(value, id + 1, is_part) : 0;
	size_t end = id + 1 + ticket;

	if (value.n > VALUE_MAX || !id || !ticket || end + 1 >= value.n || run_of(value, end + 1, is_hex) != value.n - end - 1)
		return SPAN("");
	return (struct span){value.p, value.n - end - 1 == SECRET_N ? end + 1 + SINCE_N : end};
}

#define SHOWN_BYTES 100 /* of a value that no redlockd wrote */

struct span shown_what(struct span value, char room[SHOWN_MAX])
{
	struct span what = shown_public(value);
	size_t shown = value.n < SHOWN_BYTES ? value.n : SHOWN_BYTES;
	int n;

	if (what.n > 0)
		return what;
	n = snprintf(room, SHOWN_MAX - SHOWN_BYTES, "#%zu:", value.n);
	if (shown > 0)
		memcpy(room + n, value.p, shown);
	return (struct span){room, (size_t)n + shown};
}

/* --- the key of a call ---------------------------------------------------------------------------------------------------- */

void key_view_read(struct memory *m, struct key_view *s, int64_t now_ms)
{
	s->broken = s->bare.p[0] == '!';
	if (s->broken)
		s->bare = (struct span){s->bare.p + 1, s->bare.n - 1};
	s->shared = share_list_read(&m->shares, s->bare, now_ms);
	if (s->shared && m->shares.count == 0)
		*s = (struct key_view){.key = s->key};
}

void answer_unjoined(const struct memory *m, const struct call *c, struct answer *a)
{
	answer_code(a, 'Q', m->fence, -2);
	if (!span_equal(marker_of(m), c->marker))
		a->found = marker_of(m);
}

/* The public part of the share that ends last. A broken one is shown with its '!', like any other broken value. */
static void answer_shared(struct memory *m, const struct key_view *s, struct answer *a)
{
	const struct share_end *last = share_list_last(&m->shares);
	struct span shown = shown_public(last->value);

	answer_code(a, 'S', m->fence, last->ends_ms - a->server_us / 1000);
	a->found = shown;
	if (!s->broken)
		return;
	m->shown[0] = '!';
	if (shown.n > 0)
		memcpy(m->shown + 1, shown.p, shown.n);
	a->found = (struct span){m->shown, 1 + shown.n};
}

void answer_occupied(struct memory *m, const struct key_view *s, struct answer *a)
{
	if (s->shared)
		return answer_shared(m, s, a);
	answer_code(a, s->key->foreign ? 'K' : 'B', m->fence, memory_pttl(m, s->key, a->server_us / 1000));
	if (!s->key->foreign)
		a->found = shown_public(key_value(s->key));
}

void answer_in_the_way(struct memory *m, const struct key_view *s, struct answer *a)
{
	answer_occupied(m, s, a);
	if (a->code == 'S')
		a->code = 'B';
}
