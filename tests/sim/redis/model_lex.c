/* SPDX-License-Identifier: BSD-2-Clause */
/* ZRANGEBYLEX: ranges by name, of a sorted set whose members all have the same score. */
#include "tests/sim/redis/model_command.h"

struct lex_bound {
	struct span name;
	int end; /* -1: before all names, 1: behind all names */
	bool open;
};

static bool lex_bound_read(struct span word, struct lex_bound *ret)
{
	char first = word.n ? word.p[0] : 0;

	*ret = (struct lex_bound){.end = first == '-' ? -1 : first == '+' ? 1 : 0, .open = first == '('};
	if (ret->end)
		return word.n == 1;
	if (first != '(' && first != '[')
		return false;
	ret->name = (struct span){word.p + 1, word.n - 1};
	return true;
}

static int lex_compare(struct span name, const struct lex_bound *bound)
{
	size_t n = name.n < bound->name.n ? name.n : bound->name.n;
	int order = n ? memcmp(name.p, bound->name.p, n) : 0;

	if (bound->end)
		return -bound->end;
	return order ? order : (name.n > bound->name.n) - (name.n < bound->name.n);
}

static bool lex_within(struct span name, const struct lex_bound *min, const struct lex_bound *max)
{
	int low = lex_compare(name, min), high = lex_compare(name, max);

	return (min->open ? low > 0 : low >= 0) && (max->open ? high < 0 : high <= 0);
}

static void lex_write(const struct items *s, const struct lex_bound bound[2], int64_t offset, int64_t most, struct buf *out)
{
	struct buf names = {0};
	int64_t place = 0, count = 0;

	for (size_t i = 0; s && i < s->count; i++) {
		if (!lex_within(s->item[i].name, &bound[0], &bound[1]) || place++ < offset || offset < 0 || (most >= 0 && count >= most))
			continue;
		wire_bulk(&names, s->item[i].name);
		count++;
	}
	wire_array(out, (size_t)count);
	buf_append(out, buf_begin(&names), buf_length(&names));
	buf_release(&names);
}

void model_run_zrangebylex(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	int64_t offset = 0, most = -1;
	struct lex_bound bound[2];
	struct datum *datum;

	if (n != 4 && (n != 7 || !model_word_is(word[4], "limit"))) {
		model_syntax_error(out);
		return;
	}
	if (n == 7 && (!model_integer(word[5], out, &offset) || !model_integer(word[6], out, &most)))
		return;
	if (!lex_bound_read(word[2], &bound[0]) || !lex_bound_read(word[3], &bound[1])) {
		wire_error(out, "ERR min or max not valid string range item");
		return;
	}
	if (model_look(m, word[1], DATUM_ZSET, out, &datum))
		lex_write(datum ? &datum->items : NULL, bound, offset, most, out);
}
