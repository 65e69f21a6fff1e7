/* SPDX-License-Identifier: BSD-2-Clause */
/* See memory_key.h. */
#include "daemon/store/memory_key.h"

#include <string.h>

void standing_read(struct memory *m, struct standing *s, int64_t now_ms)
{
	s->broken = s->bare.p[0] == '!';
	if (s->broken)
		s->bare = (struct span){s->bare.p + 1, s->bare.n - 1};
	s->shared = share_list_read(&m->shares, s->bare, now_ms);
	if (s->shared && m->shares.count == 0)
		*s = (struct standing){.key = s->key};
}

void answer_unjoined(const struct memory *m, const struct call *c, struct answer *a)
{
	answer_code(a, 'Q', m->fence, -2);
	if (!span_equal(marker_of(m), c->marker))
		a->found = marker_of(m);
}

/* The public part of the share that ends last. A broken one is shown with its '!', like any other broken value. */
static void answer_shared(struct memory *m, const struct standing *s, struct answer *a)
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

void answer_occupied(struct memory *m, const struct standing *s, struct answer *a)
{
	if (s->shared)
		return answer_shared(m, s, a);
	answer_code(a, s->key->foreign ? 'K' : 'B', m->fence, memory_pttl(m, s->key, a->server_us / 1000));
	if (!s->key->foreign)
		a->found = shown_public(key_value(s->key));
}

void answer_in_the_way(struct memory *m, const struct standing *s, struct answer *a)
{
	answer_occupied(m, s, a);
	if (a->code == 'S')
		a->code = 'B';
}
