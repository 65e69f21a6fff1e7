/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on hashes. */
#include "tests/sim/redis/model_command.h"

static void field_write(const struct datum *datum, struct span name, struct buf *out)
{
	size_t i = datum ? items_find(&datum->items, name) : 0;

	if (datum && i < datum->items.count)
		wire_bulk(out, datum->items.item[i].value);
	else
		wire_nil(out);
}

static bool hash_look(struct model *m, struct span key, struct buf *out, struct datum **ret_datum)
{
	return model_look(m, key, DATUM_HASH, out, ret_datum);
}

static struct datum *hash_made(struct model *m, struct datum *datum, struct span key)
{
	return datum ? datum : data_add_items(&m->data, key, DATUM_HASH);
}

void model_run_hget(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;

	(void)n;
	if (hash_look(m, word[1], out, &datum))
		field_write(datum, word[2], out);
}

void model_run_hmget(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	size_t i;

	if (!hash_look(m, word[1], out, &datum))
		return;
	wire_array(out, n - 2);
	for (i = 2; i < n; i++)
		field_write(datum, word[i], out);
}

void model_run_hgetall(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	size_t i;

	(void)n;
	if (!hash_look(m, word[1], out, &datum))
		return;
	wire_array(out, datum ? 2 * datum->items.count : 0);
	for (i = 0; datum && i < datum->items.count; i++) {
		wire_bulk(out, datum->items.item[i].name);
		wire_bulk(out, datum->items.item[i].value);
	}
}

void model_run_hexists(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;

	(void)n;
	if (hash_look(m, word[1], out, &datum))
		wire_number(out, datum && items_find(&datum->items, word[2]) < datum->items.count);
}

void model_run_hlen(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;

	(void)n;
	if (hash_look(m, word[1], out, &datum))
		wire_number(out, datum ? (int64_t)datum->items.count : 0);
}

void model_run_hset(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	int64_t new = 0;
	size_t i;

	if (n % 2)
		return wire_error(out, "ERR wrong number of arguments for 'hset' command");
	if (!hash_look(m, word[1], out, &datum))
		return;
	datum = hash_made(m, datum, word[1]);
	for (i = 2; i < n; i += 2)
		new += items_put_field(&datum->items, word[i], word[i + 1]);
	wire_number(out, new);
}

void model_run_hsetnx(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;

	(void)n;
	if (!hash_look(m, word[1], out, &datum))
		return;
	if (datum && items_find(&datum->items, word[2]) < datum->items.count)
		return wire_number(out, 0);
	items_put_field(&hash_made(m, datum, word[1])->items, word[2], word[3]);
	wire_number(out, 1);
}

void model_run_hdel(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	model_remove_items(m, DATUM_HASH, word, n, out);
}

static bool field_number(const struct datum *datum, struct span name, int64_t *ret_n)
{
	size_t i = datum ? items_find(&datum->items, name) : 0;

	*ret_n = 0;
	return !datum || i == datum->items.count || wire_integer(datum->items.item[i].value, ret_n);
}

void model_run_hincrby(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	char digits[20];
	int64_t by, value;

	(void)n;
	if (!model_integer(word[3], out, &by) || !hash_look(m, word[1], out, &datum))
		return;
	if (!field_number(datum, word[2], &value))
		return wire_error(out, "ERR hash value is not an integer");
	if (__builtin_add_overflow(value, by, &value))
		return wire_error(out, "ERR increment or decrement would overflow");
	items_put_field(&hash_made(m, datum, word[1])->items, word[2], (struct span){digits, wire_digits(value, digits)});
	wire_number(out, value);
}
