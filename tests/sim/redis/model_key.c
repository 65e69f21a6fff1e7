/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on keys of any type, and on their expiry. */
#include "tests/sim/redis/model_command.h"

static struct datum *look(struct model *m, struct span key)
{
	return data_find(&m->data, key, model_now_ms(m));
}

void model_run_del(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	int64_t gone = 0;
	size_t i;

	for (i = 1; i < n; i++) {
		datum = look(m, word[i]);
		if (!datum)
			continue;
		data_remove(&m->data, datum);
		gone++;
	}
	wire_number(out, gone);
}

void model_run_exists(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	int64_t there = 0;
	size_t i;

	for (i = 1; i < n; i++)
		there += look(m, word[i]) != NULL;
	wire_number(out, there);
}

void model_run_type(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	static const char *const names[] = {[DATUM_STRING] = "string", [DATUM_HASH] = "hash", [DATUM_ZSET] = "zset"};
	const struct datum *datum = look(m, word[1]);

	(void)n;
	wire_status(out, datum ? names[datum->type] : "none");
}

void model_run_pttl(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	const struct datum *datum = look(m, word[1]);

	(void)n;
	wire_number(out, !datum ? -2 : datum->expires_ms == DATUM_FOREVER ? -1 : datum->expires_ms - model_now_ms(m));
}

void model_run_pexpiretime(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	const struct datum *datum = look(m, word[1]);

	(void)n;
	wire_number(out, datum ? datum->expires_ms : -2);
}

void model_run_persist(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum = look(m, word[1]);
	bool had = datum && datum->expires_ms != DATUM_FOREVER;

	(void)n;
	if (had)
		datum->expires_ms = DATUM_FOREVER;
	wire_number(out, had);
}

struct expire_options {
	bool nx, xx, gt, lt;
};

static bool expire_options_parse(const struct span *word, size_t n, struct buf *out, struct expire_options *o)
{
	size_t i;

	for (i = 3; i < n; i++) {
		o->nx |= model_word_is(word[i], "nx");
		o->xx |= model_word_is(word[i], "xx");
		o->gt |= model_word_is(word[i], "gt");
		o->lt |= model_word_is(word[i], "lt");
		if (!model_word_is(word[i], "nx") && !model_word_is(word[i], "xx") && !model_word_is(word[i], "gt") &&
		    !model_word_is(word[i], "lt")) {
			wire_error(out, "ERR Unsupported option %.*s", (int)word[i].n, word[i].p);
			return false;
		}
	}
	if (o->nx && (o->xx || o->gt || o->lt))
		wire_error(out, "ERR NX and XX, GT or LT options at the same time are not compatible");
	else if (o->gt && o->lt)
		wire_error(out, "ERR GT and LT options at the same time are not compatible");
	else
		return true;
	return false;
}

/* No TTL counts as an infinite one. */
static bool expire_applies(const struct expire_options *o, int64_t current, int64_t when)
{
	bool forever = current == DATUM_FOREVER;

	return !(o->nx && !forever) && !(o->xx && forever) && !(o->gt && (forever || when <= current)) &&
	       !(o->lt && !forever && when >= current);
}

static void expire(struct model *m, const struct span *word, size_t n, int64_t base, struct buf *out)
{
	struct expire_options o = {0};
	struct datum *datum;
	int64_t when;

	if (!expire_options_parse(word, n, out, &o) || !model_integer(word[2], out, &when))
		return;
	if (__builtin_add_overflow(when, base, &when))
		return wire_error(out, "ERR invalid expire time in '%s' command", base ? "pexpire" : "pexpireat");
	datum = look(m, word[1]);
	if (!datum || !expire_applies(&o, datum->expires_ms, when))
		return wire_number(out, 0);
	if (when <= model_now_ms(m)) /* a moment that has come removes the key at once; a TTL that runs down to it leaves it for that millisecond */
		data_remove(&m->data, datum);
	else
		datum->expires_ms = when;
	wire_number(out, 1);
}

void model_run_pexpire(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	expire(m, word, n, model_now_ms(m), out);
}

void model_run_pexpireat(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	expire(m, word, n, 0, out);
}
