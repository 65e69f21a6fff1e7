/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on sorted sets. Ranges by place and by score have one form: a first place, a number of places, a direction. */
#include "tests/sim/redis/model_command.h"

#include <math.h>
#include <stdlib.h>

static bool zset_look(struct model *m, struct span key, struct buf *out, struct datum **ret_datum)
{
	return model_look(m, key, DATUM_ZSET, out, ret_datum);
}

static bool double_read(struct span word, double *ret_n)
{
	char text[64], *end;

	if (!word.n || word.n >= sizeof(text) || word.p[0] == ' ' || (word.p[0] >= '\t' && word.p[0] <= '\r'))
		return false;
	memcpy(text, word.p, word.n);
	text[word.n] = 0;
	*ret_n = strtod(text, &end);
	return end == text + word.n && !isnan(*ret_n);
}

/* --- members --------------------------------------------------------------------------------------------------------- */

struct zadd_options {
	bool nx, xx, gt, lt, ch;
	size_t first; /* the first word behind the options */
};

static struct zadd_options zadd_options_parse(const struct span *word, size_t n)
{
	struct zadd_options o = {.first = 2};

	for (; o.first < n; o.first++) {
		if (model_word_is(word[o.first], "nx"))
			o.nx = true;
		else if (model_word_is(word[o.first], "xx"))
			o.xx = true;
		else if (model_word_is(word[o.first], "gt"))
			o.gt = true;
		else if (model_word_is(word[o.first], "lt"))
			o.lt = true;
		else if (model_word_is(word[o.first], "ch"))
			o.ch = true;
		else
			break;
	}
	return o;
}

/* Checks all words before anything is written. */
static bool zadd_sound(const struct zadd_options *o, const struct span *word, size_t n, struct buf *out)
{
	double score;
	size_t i;

	if (n == o->first || (n - o->first) % 2) {
		model_syntax_error(out);
		return false;
	}
	if (o->nx && o->xx) {
		wire_error(out, "ERR XX and NX options at the same time are not compatible");
		return false;
	}
	if ((o->gt && o->nx) || (o->lt && o->nx) || (o->gt && o->lt)) {
		wire_error(out, "ERR GT, LT, and/or NX options at the same time are not compatible");
		return false;
	}
	for (i = o->first; i < n; i += 2) {
		if (double_read(word[i], &score))
			continue;
		wire_error(out, "ERR value is not a valid float");
		return false;
	}
	return true;
}

static bool score_moves(const struct zadd_options *o, double from, double to)
{
	return !o->nx && !(o->gt && to < from) && !(o->lt && to > from) && (to < from || to > from);
}

static void member_add(struct items *s, const struct zadd_options *o, struct span name, struct span text, int64_t *added,
		       int64_t *moved)
{
	size_t i = items_find(s, name);
	double score;

	(void)double_read(text, &score); /* zadd_sound has checked it */
	score += 0.0;                    /* a small set stores -0 as 0 */
	if (i == s->count && !o->xx) {
		items_put_member(s, name, score);
		++*added;
	} else if (i < s->count && score_moves(o, s->item[i].score, score)) {
		items_put_member(s, name, score);
		++*moved;
	}
}

void model_run_zadd(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct zadd_options o = zadd_options_parse(word, n);
	struct datum *datum;
	int64_t added = 0, moved = 0;
	size_t i;

	if (!zadd_sound(&o, word, n, out) || !zset_look(m, word[1], out, &datum))
		return;
	if (!datum && !o.xx)
		datum = data_add_items(&m->data, word[1], DATUM_ZSET);
	for (i = o.first; datum && i < n; i += 2)
		member_add(&datum->items, &o, word[i + 1], word[i], &added, &moved);
	wire_number(out, added + (o.ch ? moved : 0));
}

void model_run_zrem(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	model_remove_items(m, DATUM_ZSET, word, n, out);
}

void model_run_zcard(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;

	(void)n;
	if (zset_look(m, word[1], out, &datum))
		wire_number(out, datum ? (int64_t)datum->items.count : 0);
}

/* False: there is no such member, or the key is of another type, and the reply is written. */
static bool member_look(struct model *m, const struct span *word, struct buf *out, struct datum **ret_datum, size_t *ret_i)
{
	if (!zset_look(m, word[1], out, ret_datum))
		return false;
	*ret_i = *ret_datum ? items_find(&(*ret_datum)->items, word[2]) : 0;
	if (*ret_datum && *ret_i < (*ret_datum)->items.count)
		return true;
	wire_nil(out);
	return false;
}

void model_run_zscore(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	size_t i;

	(void)n;
	if (member_look(m, word, out, &datum, &i))
		wire_double(out, datum->items.item[i].score);
}

void model_run_zrank(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	size_t i;

	(void)n;
	if (member_look(m, word, out, &datum, &i))
		wire_number(out, (int64_t)i);
}

/* --- ranges ---------------------------------------------------------------------------------------------------------- */

struct range {
	bool by_score, reverse, with_scores, limited;
	double min, max;
	bool min_open, max_open;
	int64_t start, stop;   /* by place */
	int64_t offset, count; /* LIMIT */
};

/* Less strict than a score: leading blanks are skipped, and an empty text is 0. */
static bool bound_read(struct span word, double *ret_n, bool *ret_open)
{
	char text[64], *end;

	*ret_open = word.n && word.p[0] == '(';
	if (*ret_open)
		word.p++, word.n--;
	if (word.n >= sizeof(text))
		return false;
	memcpy(text, word.p, word.n);
	text[word.n] = 0;
	*ret_n = strtod(text, &end);
	return !*end && !isnan(*ret_n);
}

static bool scores_read(struct span min, struct span max, struct buf *out, struct range *r)
{
	r->by_score = true;
	if (bound_read(min, &r->min, &r->min_open) && bound_read(max, &r->max, &r->max_open))
		return true;
	wire_error(out, "ERR min or max is not a float");
	return false;
}

static bool range_options_parse(const struct span *word, size_t n, bool any, struct buf *out, struct range *r)
{
	size_t i;

	r->count = -1;
	for (i = 4; i < n; i++) {
		if (model_word_is(word[i], "withscores")) {
			r->with_scores = true;
		} else if (model_word_is(word[i], "limit") && n - i > 2) {
			r->limited = true;
			if (!model_integer(word[i + 1], out, &r->offset) || !model_integer(word[i + 2], out, &r->count))
				return false;
			i += 2;
		} else if (any && model_word_is(word[i], "rev")) {
			r->reverse = true;
		} else if (any && model_word_is(word[i], "byscore")) {
			r->by_score = true;
		} else {
			model_syntax_error(out);
			return false;
		}
	}
	return true;
}

static bool range_parse(const struct span *word, size_t n, bool any, struct buf *out, struct range *r)
{
	if (!range_options_parse(word, n, any, out, r))
		return false;
	if (r->count != -1 && !r->by_score) {
		wire_error(out, "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
		return false;
	}
	if (r->by_score)
		return scores_read(word[r->reverse ? 3 : 2], word[r->reverse ? 2 : 3], out, r);
	return model_integer(word[2], out, &r->start) && model_integer(word[3], out, &r->stop);
}

static bool score_within(const struct range *r, double score)
{
	return (r->min_open ? score > r->min : score >= r->min) && (r->max_open ? score < r->max : score <= r->max);
}

/* The places whose scores are in the range: they are contiguous. */
static void scores_locate(const struct items *s, const struct range *r, int64_t *ret_first, int64_t *ret_n)
{
	size_t i = 0, end;

	while (i < s->count && !score_within(r, s->item[i].score))
		i++;
	for (end = i; end < s->count && score_within(r, s->item[end].score);)
		end++;
	*ret_first = (int64_t)(r->reverse ? s->count - end : i);
	*ret_n = (int64_t)(end - i);
	if (!r->limited)
		return;
	if (r->offset < 0 || r->offset >= *ret_n) {
		*ret_n = 0;
		return;
	}
	*ret_first += r->offset;
	*ret_n -= r->offset;
	if (r->count >= 0 && r->count < *ret_n)
		*ret_n = r->count;
}

/* Negative places count from the end. */
static void places_locate(const struct items *s, const struct range *r, int64_t *ret_first, int64_t *ret_n)
{
	int64_t count = (int64_t)s->count, start = r->start, stop = r->stop;

	start = start < 0 ? (start < -count ? 0 : start + count) : start;
	stop = stop < 0 ? (stop < -count ? -1 : stop + count) : stop;
	if (stop >= count)
		stop = count - 1;
	*ret_first = start;
	*ret_n = start <= stop ? stop - start + 1 : 0;
}

static void range_write(struct model *m, struct span key, const struct range *r, struct buf *out)
{
	struct datum *datum;
	const struct item *item;
	int64_t first = 0, n = 0, i;

	if (!zset_look(m, key, out, &datum))
		return;
	if (datum)
		(r->by_score ? scores_locate : places_locate)(&datum->items, r, &first, &n);
	wire_array(out, (size_t)n * (r->with_scores ? 2 : 1));
	for (i = first; i < first + n; i++) {
		item = &datum->items.item[r->reverse ? (int64_t)datum->items.count - 1 - i : i];
		wire_bulk(out, item->name);
		if (r->with_scores)
			wire_double(out, item->score);
	}
}

void model_run_zrange(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct range r = {0};

	if (range_parse(word, n, true, out, &r))
		range_write(m, word[1], &r, out);
}

void model_run_zrangebyscore(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct range r = {.by_score = true};

	if (range_parse(word, n, false, out, &r))
		range_write(m, word[1], &r, out);
}

void model_run_zrevrangebyscore(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct range r = {.by_score = true, .reverse = true};

	if (range_parse(word, n, false, out, &r))
		range_write(m, word[1], &r, out);
}

void model_run_zcount(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct range r = {0};
	struct datum *datum;
	int64_t first, count = 0;

	(void)n;
	if (!scores_read(word[2], word[3], out, &r) || !zset_look(m, word[1], out, &datum))
		return;
	if (datum)
		scores_locate(&datum->items, &r, &first, &count);
	wire_number(out, count);
}

void model_run_zremrangebyscore(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct range r = {0};
	struct datum *datum;
	int64_t first = 0, count = 0;

	(void)n;
	if (!scores_read(word[2], word[3], out, &r) || !zset_look(m, word[1], out, &datum))
		return;
	if (datum) {
		scores_locate(&datum->items, &r, &first, &count);
		items_remove(&datum->items, (size_t)first, (size_t)count);
	}
	model_tidy(m, datum);
	wire_number(out, count);
}
