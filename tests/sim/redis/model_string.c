/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on strings. */
#include "tests/sim/redis/model_command.h"

#include <stddef.h>

static void text_write(const struct datum *datum, struct buf *out)
{
	if (datum)
		wire_bulk(out, datum->text);
	else
		wire_nil(out);
}

void model_run_get(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;

	(void)n;
	if (model_look(m, word[1], DATUM_STRING, out, &datum))
		text_write(datum, out);
}

void model_run_mget(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	size_t i;

	wire_array(out, n - 1);
	for (i = 1; i < n; i++) {
		datum = data_find(&m->data, word[i], model_now_ms(m));
		text_write(datum && datum->type == DATUM_STRING ? datum : NULL, out);
	}
}

/* The options of SET; they exclude each other as in Redis. */
struct set_options {
	bool nx, xx, get, keep;
	enum { TTL_NONE, TTL_EX, TTL_PX, TTL_EXAT, TTL_PXAT } ttl;
	struct span time;
};

static const struct {
	const char *word;
	int ttl;
} ttl_options[] = {{"ex", TTL_EX}, {"px", TTL_PX}, {"exat", TTL_EXAT}, {"pxat", TTL_PXAT}};

static bool ttl_option_parse(const struct span *word, size_t n, size_t *i, struct set_options *o)
{
	size_t k;

	for (k = 0; k < sizeof(ttl_options) / sizeof(*ttl_options); k++) {
		if (!model_word_is(word[*i], ttl_options[k].word))
			continue;
		if (o->ttl || o->keep || *i + 1 == n)
			return false;
		o->ttl = ttl_options[k].ttl;
		o->time = word[++*i];
		return true;
	}
	return false;
}

static bool set_options_parse(const struct span *word, size_t n, struct set_options *o)
{
	size_t i;

	for (i = 3; i < n; i++) {
		if (model_word_is(word[i], "nx") && !o->xx)
			o->nx = true;
		else if (model_word_is(word[i], "xx") && !o->nx)
			o->xx = true;
		else if (model_word_is(word[i], "get"))
			o->get = true;
		else if (model_word_is(word[i], "keepttl") && !o->ttl)
			o->keep = true;
		else if (!ttl_option_parse(word, n, &i, o))
			return false;
	}
	return true;
}

/* When the key expires; DATUM_FOREVER without such an option. */
static bool set_time(const struct model *m, const struct set_options *o, struct buf *out, int64_t *ret_ms)
{
	int64_t n, ms = DATUM_FOREVER;
	bool seconds = o->ttl == TTL_EX || o->ttl == TTL_EXAT, relative = o->ttl == TTL_EX || o->ttl == TTL_PX;

	if (o->ttl) {
		if (!model_integer(o->time, out, &n))
			return false;
		if (n <= 0 || __builtin_mul_overflow(n, seconds ? 1000 : 1, &ms) ||
		    (relative && __builtin_add_overflow(ms, model_now_ms(m), &ms))) {
			wire_error(out, "ERR invalid expire time in 'set' command");
			return false;
		}
	}
	*ret_ms = ms;
	return true;
}

static void set_put(struct model *m, struct datum *datum, const struct span *word, bool keep, int64_t expires_ms)
{
	datum = data_set_text(&m->data, datum, word[1], word[2]);
	if (!keep)
		datum->expires_ms = expires_ms;
}

void model_run_set(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct set_options o = {0};
	struct datum *datum;
	int64_t expires_ms;

	if (!set_options_parse(word, n, &o))
		return model_syntax_error(out);
	if (!set_time(m, &o, out, &expires_ms))
		return;
	datum = data_find(&m->data, word[1], model_now_ms(m));
	if (o.get) {
		if (!model_look(m, word[1], DATUM_STRING, out, &datum))
			return;
		text_write(datum, out);
	}
	if (!(o.nx && datum) && !(o.xx && !datum)) {
		set_put(m, datum, word, o.keep, expires_ms);
		if (!o.get)
			wire_status(out, "OK");
	} else if (!o.get) {
		wire_nil(out);
	}
}

static void text_add(struct model *m, struct span key, int64_t by, struct buf *out)
{
	struct datum *datum;
	char digits[20];
	int64_t value = 0;

	if (!model_look(m, key, DATUM_STRING, out, &datum) || (datum && !model_integer(datum->text, out, &value)))
		return;
	if (__builtin_add_overflow(value, by, &value))
		return wire_error(out, "ERR increment or decrement would overflow");
	data_set_text(&m->data, datum, key, (struct span){digits, wire_digits(value, digits)});
	wire_number(out, value);
}

void model_run_incr(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	(void)n;
	text_add(m, word[1], 1, out);
}

void model_run_incrby(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	int64_t by;

	(void)n;
	if (model_integer(word[2], out, &by))
		text_add(m, word[1], by, out);
}
