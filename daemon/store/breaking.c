/* SPDX-License-Identifier: BSD-2-Clause */
/* lua/break.lua in C. */
#include "daemon/store/breaking.h"

/* Puts the '!' before the value; the TTL stays. */
static void key_break(struct memory *m, const struct call *c, const struct standing *s, const struct answer *a)
{
	int64_t pttl_ms = memory_pttl(m, s->key, a->server_us / 1000);

	buf_clear(&m->text);
	buf_append(&m->text, "!", 1);
	buf_append(&m->text, s->bare.p, s->bare.n);
	keyspace_set(&m->keys, s->key, c->name, (struct span){buf_begin(&m->text), buf_length(&m->text)},
		     pttl_ms != 0 ? s->key->until : memory_until(m, a->server_us / 1000 + 1));
}

/* break.lua. A key whose value is not known is from the previous run. Nobody can renew it, so it counts as broken already. */
void memory_break(struct memory *m, const struct call *c, struct instant now, struct answer *a)
{
	struct standing s;
	struct span what;
	int64_t pttl_ms;

	if (!memory_is_joined(m, c))
		return answer_unjoined(m, c, a);
	s = memory_standing(m, c, now, a);
	if (!s.there)
		return answer_code(a, 'M', m->fence, -2);
	if (s.key->foreign)
		return answer_occupied(m, &s, a);
	pttl_ms = memory_pttl(m, s.key, a->server_us / 1000);
	what = s.shared ? SPAN("+") : shown_what(s.bare, m->shown);
	if (!span_equal(what, c->value)) {
		answer_code(a, 'B', m->fence, pttl_ms);
		a->found = what;
		return;
	}
	if (what.p[0] == '#' && s.key->value_n) {
		keyspace_drop(&m->keys, s.key);
		return answer_code(a, 'R', m->fence, -2);
	}
	if (s.key->value_n && !s.broken)
		key_break(m, c, &s, a);
	answer_code(a, 'X', m->fence, pttl_ms);
}
