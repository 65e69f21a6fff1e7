/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/store/share_list.h"

#define ENDS_N 16

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes " <end>,<value>" off the beginning of the text. */
static bool share_read(struct span *text, struct share_end *ret_share)
{
	const char *p = text->p + 1, *end = text->p + text->n;
	int64_t ends = 0;
	size_t n;

	if (text->n < 1 + ENDS_N + 2 || text->p[0] != ' ' || p[ENDS_N] != ',')
		return false;
	for (unsigned i = 0; i < ENDS_N; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		ends = ends * 10 + (p[i] - '0');
	}
	p += ENDS_N + 1;
	for (n = 0; p + n < end && !is_blank(p[n]); n++)
		;
	*ret_share = (struct share_end){ends, {p, n}};
	*text = (struct span){p + n, (size_t)(end - p) - n};
	return n > 0;
}

bool share_list_read(struct share_list *s, struct span text, int64_t now_ms)
{
	struct share_end share;

	s->count = 0;
	if (text.n < 2 || text.p[0] != 'R')
		return false;
	for (text.p++, text.n--; text.n > 0;) {
		if (!share_read(&text, &share))
			return false;
		if (share.ends_ms >= now_ms && s->count < SHARES_MOST)
			s->share[s->count++] = share;
	}
	return true;
}

const struct share_end *share_list_last(const struct share_list *s)
{
	const struct share_end *last = &s->share[0];

	for (unsigned i = 1; i < s->count; i++)
		if (s->share[i].ends_ms > last->ends_ms)
			last = &s->share[i];
	return last;
}

struct share_end *share_list_of(struct share_list *s, struct span value)
{
	for (unsigned i = 0; i < s->count; i++)
		if (span_equal(s->share[i].value, value))
			return &s->share[i];
	return NULL;
}

static size_t digits(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return (size_t)(at - p);
}

/* '^[^:]*:%d+~(%d+):'; "" if the value does not match. */
static struct span limit_of(struct span value)
{
	const char *end = value.p + value.n, *at = value.n > 0 ? memchr(value.p, ':', value.n) : NULL;
	size_t n = at ? digits(at + 1, end) : 0;

	if (n == 0 || at + 1 + n == end || at[1 + n] != '~')
		return SPAN("");
	at += n + 2;
	n = digits(at, end);
	return n > 0 && at + n < end && at[n] == ':' ? (struct span){at, n} : SPAN("");
}

bool share_list_suits(const struct share_list *s, struct span value)
{
	return s->count == 0 || span_equal(limit_of(s->share[0].value), limit_of(value));
}

int64_t share_list_take(struct share_list *s, const struct call *c, bool *ret_again)
{
	int64_t ends = -1;
	unsigned kept = 0;

	*ret_again = false;
	for (unsigned i = 0; i < s->count; i++) {
		struct share_end share = s->share[i];
		bool again = c->kind == CALL_EXTEND && span_equal(share.value, c->new_value);

		if (!again && !span_equal(share.value, c->value)) {
			s->share[kept++] = share;
			continue;
		}
		ends = share.ends_ms > ends ? share.ends_ms : ends;
		*ret_again |= again;
	}
	s->count = kept;
	return ends;
}

void share_list_put(struct share_list *s, struct span value, int64_t ends_ms)
{
	s->share[s->count++] = (struct share_end){ends_ms, value};
}

int64_t share_list_write(const struct share_list *s, struct buf *out, int64_t now_ms)
{
	int64_t last = now_ms + 1;

	buf_append(out, "R", 1);
	for (unsigned i = 0; i < s->count; i++) {
		buf_printf(out, " %016lld,", (long long)s->share[i].ends_ms);
		buf_append(out, s->share[i].value.p, s->share[i].value.n);
		last = s->share[i].ends_ms > last ? s->share[i].ends_ms : last;
	}
	return last - now_ms;
}
