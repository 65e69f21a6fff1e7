/* SPDX-License-Identifier: BSD-2-Clause */
/* Which part runs a command: the scripts, or the model. */
#include "tests/sim/redis/redis.h"

#include <ctype.h>

void redis_init(struct redis *r)
{
	model_init(&r->model);
	r->binding = binding_new(&r->model);
}

void redis_release(struct redis *r)
{
	binding_free(r->binding);
	model_release(&r->model);
}

/* EVAL script keys key … arg …. False: the error is written. */
static bool keys_count(const struct span *word, size_t n, struct buf *out, size_t *ret_keys)
{
	int64_t keys;

	if (!wire_integer(word[2], &keys))
		wire_error(out, "ERR value is not an integer or out of range");
	else if (keys > (int64_t)n - 3)
		wire_error(out, "ERR Number of keys can't be greater than number of args");
	else if (keys < 0)
		wire_error(out, "ERR Number of keys can't be negative");
	else
		return *ret_keys = (size_t)keys, true;
	return false;
}

/* Redis names scripts in lower case. Negative: not in the cache. */
static int cached_find(const struct redis *r, struct span sha)
{
	char lower[SHA1_HEX];
	size_t i;
	int script = binding_find(r->binding, sha); /* most are in lower case already */

	if (sha.n != SHA1_HEX)
		return -1;
	for (i = 0; i < SHA1_HEX && script < 0; i++)
		lower[i] = (char)tolower((unsigned char)sha.p[i]);
	if (script < 0)
		script = binding_find(r->binding, (struct span){lower, SHA1_HEX});
	return script >= 0 && binding_cached(r->binding, script) ? script : -1;
}

static void script_run(struct redis *r, const struct span *word, size_t n, struct buf *out)
{
	bool by_text = model_word_is(word[0], "eval");
	size_t keys;
	int script;

	if (!by_text && word[1].n != SHA1_HEX)
		return wire_error(out, "NOSCRIPT No matching script. Please use EVAL.");
	if (!keys_count(word, n, out, &keys))
		return;
	script = by_text ? binding_compile(r->binding, word[1], out) : cached_find(r, word[1]);
	if (script < 0 && !by_text)
		wire_error(out, "NOSCRIPT No matching script. Please use EVAL.");
	if (script < 0)
		return;
	binding_cache(r->binding, script);
	binding_run(r->binding, script, word + 3, keys, word + 3 + keys, n - 3 - keys, out);
}

static void script_load(struct redis *r, struct span text, struct buf *out)
{
	int script = binding_compile(r->binding, text, out);

	if (script < 0)
		return;
	binding_cache(r->binding, script);
	wire_bulk(out, span_of(binding_sha(r->binding, script)));
}

static void script_command(struct redis *r, const struct span *word, size_t n, struct buf *out)
{
	size_t i;

	if (model_word_is(word[1], "load") && n == 3) {
		script_load(r, word[2], out);
	} else if (model_word_is(word[1], "flush") && n == 2) {
		binding_flush(r->binding);
		wire_status(out, "OK");
	} else if (model_word_is(word[1], "exists") && n > 2) {
		wire_array(out, n - 2);
		for (i = 2; i < n; i++)
			wire_number(out, cached_find(r, word[i]) >= 0);
	} else {
		wire_error(out, "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try SCRIPT HELP.",
			   (int)word[1].n, word[1].p);
	}
}

void redis_command(struct redis *r, int64_t wall_us, const struct span *word, size_t n, struct buf *out)
{
	const struct model_command *command = model_command(word[0]);
	const char *refusal;

	r->model.now_us = wall_us;
	r->model.dirty = false;
	if (!command || !(command->flags & COMMAND_DIRECT) || !model_arity_fits(command, n))
		return model_run(&r->model, word, n, out);
	refusal = model_refusal(&r->model, command);
	if (refusal)
		return wire_line(out, '-', span_of(refusal));
	if (model_word_is(word[0], "script"))
		return script_command(r, word, n, out);
	if (!model_word_is(word[0], "flushall"))
		return script_run(r, word, n, out);
	data_clear(&r->model.data);
	wire_status(out, "OK");
}
