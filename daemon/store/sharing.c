/* SPDX-License-Identifier: BSD-2-Clause */
/* lua/sharing.lua in C, and what acquire.lua does with shares. */
#include "daemon/store/sharing.h"

static int64_t at_least(int64_t n, int64_t least)
{
	return n > least ? n : least;
}

/* When a share of that TTL ends. */
static int64_t share_ends_ms(const struct call *c, int64_t now_ms)
{
	return c->px_ms < PX_MAX - now_ms ? now_ms + at_least(c->px_ms, 1) : PX_MAX;
}

/* Writes m->shares into the key. */
static bool shares_set(struct memory *m, const struct call *c, const struct key_view *s, bool broken, struct answer *a)
{
	int64_t px_ms;

	buf_clear(&m->text);
	if (broken)
		buf_append(&m->text, "!", 1);
	px_ms = share_list_write(&m->shares, &m->text, a->server_us / 1000);
	return answer_set(m, s->key, c, (struct span){buf_begin(&m->text), buf_length(&m->text)}, px_ms, a);
}

bool share_may_join(struct memory *m, const struct call *c, const struct key_view *s)
{
	return !s->broken && (share_list_of(&m->shares, c->value) || (share_list_suits(&m->shares, c->value) && m->shares.count < SHARES_MOST));
}

void share_acquire(struct memory *m, const struct call *c, const struct key_view *s, int64_t base, struct answer *a)
{
	int64_t now_ms = a->server_us / 1000, ends_ms = share_ends_ms(c, now_ms);
	struct share_end *share;

	if (!s->shared)
		m->shares.count = 0;
	share = share_list_of(&m->shares, c->value);
	if (share)
		share->ends_ms = ends_ms = at_least(ends_ms, share->ends_ms);
	else
		share_list_put(&m->shares, c->value, ends_ms);
	if (shares_set(m, c, s, false, a))
		answer_code(a, 'G', base, ends_ms - now_ms);
}

/* When the share of the call ends. Only a call with `exact` may shorten it. */
static int64_t share_end_ms(const struct call *c, int64_t ends_ms, bool again, int64_t now_ms)
{
	int64_t last = share_ends_ms(c, now_ms);

	if (!c->exact)
		return at_least(last, ends_ms);
	return (c->at_most || again) && ends_ms < last ? at_least(ends_ms, now_ms + 1) : last;
}

/* False: refused. */
static bool share_raise(struct memory *m, const struct call *c, struct answer *a)
{
	if (c->fence <= m->fence)
		return true;
	if (c->fence > memory_limit(m, a) && !c->beyond) {
		answer_code(a, 'F', m->fence, -2);
		return false;
	}
	m->fence = c->fence;
	return true;
}

/* The call's values have no share at the key. False: its share may not be put back either. */
static bool share_may_be_put_back(struct memory *m, const struct call *c, const struct key_view *s, struct answer *a)
{
	bool may = c->create && !c->exact && !call_is_late(c, a) && !(s->there && !s->shared) && !s->broken &&
	           m->shares.count < SHARES_MOST && share_list_suits(&m->shares, c->new_value);

	if (may)
		return true;
	if (!s->there) {
		answer_code(a, 'M', m->fence, -2);
		return false;
	}
	answer_in_the_way(m, s, a);
	return false;
}

void share_extend(struct memory *m, const struct call *c, const struct key_view *s, struct answer *a)
{
	int64_t now_ms = a->server_us / 1000, ends_ms = -1;
	bool again = false, ours;
	char code = 'E';

	if (!s->shared)
		m->shares.count = 0;
	if (s->shared && (!s->broken || c->exact)) {
		struct share_list all = m->shares;

		ends_ms = share_list_take(&m->shares, c, &again);
		if (ends_ms < 0)
			m->shares = all;
	} else if (s->shared) {
		for (unsigned i = 0; i < m->shares.count && ends_ms < 0; i++)
			ends_ms = call_names(c, m->shares.share[i].value) ? m->shares.share[i].ends_ms : -1;
	} else if (s->there && s->bare.n > 0 && call_names(c, s->bare)) {
		ends_ms = memory_pttl(m, s->key, now_ms) < PX_MAX - now_ms ? now_ms + at_least(memory_pttl(m, s->key, now_ms), 0) : PX_MAX;
		again = span_equal(s->bare, c->new_value);
	}
	ours = ends_ms >= 0;
	if (ours && s->broken && !c->exact)
		return answer_code(a, 'X', m->fence, -2);
	if (!ours && !share_may_be_put_back(m, c, s, a))
		return;
	if (!ours)
		code = 'A';
	ends_ms = share_end_ms(c, ends_ms, again, now_ms);
	if (!share_raise(m, c, a))
		return;
	share_list_put(&m->shares, c->new_value, ends_ms);
	if (shares_set(m, c, s, s->broken, a))
		answer_code(a, code, m->fence, ends_ms - now_ms);
}

void share_release(struct memory *m, const struct call *c, const struct key_view *s, struct answer *a)
{
	bool again;

	if (share_list_take(&m->shares, c, &again) < 0)
		return answer_code(a, 'N', -1, -2);
	if (m->shares.count == 0)
		keyspace_drop(&m->keys, s->key);
	else if (!shares_set(m, c, s, s->broken, a))
		return;
	answer_code(a, 'R', -1, -2);
}
