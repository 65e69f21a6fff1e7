/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's own code turns calls into commands and replies into answers; between them is the model of a server. A reply that no script can give is a bug of
 * the simulator, and aborts.
 */
#include "daemon/base/mem.h"
#include "daemon/store/memory.h"
#include "tests/sim/redis/load8.h"
#include "tests/sim/redis/node_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void __attribute__((noreturn, format(printf, 1, 2))) node_abort(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

/* --- making one ---------------------------------------------------------------------------------------------------------- */

static char *own_key(const char *prefix, const char *noun)
{
	char *key;

	if (asprintf(&key, "redlockd:%s%s", prefix, noun) < 0)
		node_abort("out of memory");
	return key;
}

static void scripts_compile(struct sim_node *n)
{
	int i, script;

	for (i = 0; i < SCRIPT_N; i++) {
		buf_clear(&n->reply);
		script = binding_compile(n->redis.binding, script_text[i], &n->reply);
		if (script < 0)
			node_abort("script %d: %.*s", i, (int)buf_length(&n->reply), buf_begin(&n->reply));
		memcpy(n->sha[i], binding_sha(n->redis.binding, script), sizeof(n->sha[i]));
	}
}

struct sim_node *sim_node_new(const struct sim_node_conf *conf)
{
	struct sim_node *n = mem_alloc(sizeof(*n));

	redis_init(&n->redis);
	script_keys_init(&n->keys, conf->key_prefix, conf->skew_us, conf->tolerance_us, "");
	data_init(&n->snapshot);
	n->name = mem_copy(conf->key_prefix, strlen(conf->key_prefix));
	n->name_at = n->name_cap = strlen(conf->key_prefix);
	n->marker_key = own_key(conf->key_prefix, "!meta");
	n->fence_key = own_key(conf->key_prefix, "!fence");
	n->called_key = own_key(conf->key_prefix, "!home");
	batch_init(&n->batch);
	resp_init(&n->resp);
	buf_init(&n->command);
	buf_init(&n->reply);
	buf_init(&n->key);
	buf_init(&n->slot);
	arena_init(&n->arena);
	memo_init(&n->memo);
	sim_node_name(n, conf->run_id);
	scripts_compile(n);
	return n;
}

void sim_node_free(struct sim_node *n)
{
	if (!n)
		return;
	redis_release(&n->redis);
	script_keys_release(&n->keys);
	data_release(&n->snapshot);
	free(n->name);
	free(n->marker_key);
	free(n->fence_key);
	free(n->called_key);
	batch_release(&n->batch);
	resp_release(&n->resp);
	buf_release(&n->command);
	buf_release(&n->reply);
	buf_release(&n->key);
	buf_release(&n->slot);
	free(n->words.item);
	arena_release(&n->arena);
	memo_release(&n->memo);
	free(n);
}

/* --- calls ----------------------------------------------------------------------------------------------------------- */

static bool found_holds(const struct sim_node *n, const struct found *f)
{
	return f->known && f->changes == n->redis.model.data.changes;
}

/* The key as it stands, over or not. */
static struct datum *found_anew(struct sim_node *n, struct found *f, struct span key)
{
	*f = (struct found){.known = true, .changes = n->redis.model.data.changes, .datum = data_find(&n->redis.model.data, key, INT64_MIN)};
	return f->datum;
}

static struct span text_of(struct sim_node *n, struct found *f, const char *key)
{
	const struct datum *datum = found_holds(n, f) ? f->datum : found_anew(n, f, span_of(key));

	return datum && datum->text.n ? datum->text : SPAN("");
}

struct span sim_node_marker(struct sim_node *n)
{
	if (n->embedded)
		return n->memory ? memory_marker(n->memory) : SPAN("");
	return text_of(n, &n->marker_found, n->marker_key);
}

static struct span fence_text(struct sim_node *n)
{
	return text_of(n, &n->fence_found, n->fence_key);
}

static void answer_keep(void *context, const struct answer *answer)
{
	struct sim_node *n = context;
	struct answer *a = &n->answer[answer->call];

	*a = *answer;
	a->node = n->call[answer->call].node;
	a->call = n->call[answer->call].id;
	span_keep(&n->arena, &a->found);
	span_keep(&n->arena, &a->text);
	if (a->probe)
		a->probe = probe_copy(&n->arena, a->probe);
	n->answered++;
}

/* The batch answers in an order of its own: an entry is known by its place among the calls. */
static void call_add(struct sim_node *n, size_t i)
{
	static const uint64_t key[2];
	struct call call = n->call[i];

	call.id = i;
	batch_add(&n->batch, &n->keys, &call, siphash(key, call.name.p, call.name.n));
}

/* Sends the batch as one command and reads one reply. sha NULL: with the script's text. */
static void batch_send(struct sim_node *n, const char *sha, int64_t wall_us)
{
	buf_clear(&n->command);
	buf_clear(&n->reply);
	batch_write(&n->batch, &n->keys, sha, script_text[n->batch.script], &n->command);
	if (!wire_words((struct span){buf_begin(&n->command), buf_length(&n->command)}, &n->words))
		node_abort("a batch is not a command: %.*s", (int)buf_length(&n->command), buf_begin(&n->command));
	redis_command(&n->redis, wall_us, n->words.item, n->words.count, &n->reply);
	if (resp_feed(&n->resp, buf_begin(&n->reply), buf_length(&n->reply)) || resp_next(&n->resp) != 1)
		node_abort("not a reply: %.*s", (int)buf_length(&n->reply), buf_begin(&n->reply));
}

static void batch_carry_out(struct sim_node *n, int64_t wall_us)
{
	const struct script_sink sink = {n, answer_keep};

	batch_send(n, n->sha[n->batch.script], wall_us);
	if (script_is_missing(&n->resp))
		batch_send(n, NULL, wall_us);
	if (script_answer(&n->batch, &n->resp, 0, &sink))
		node_abort("script %d cannot have given this reply: %.*s", (int)n->batch.script, (int)buf_length(&n->reply),
			   buf_begin(&n->reply));
}

/* Runs the probe, unless the memo knows the answer. */
static void probe_carry_out(struct sim_node *n, const struct call *call, int64_t wall_us)
{
	const struct memo_read read = {&n->redis.model, sim_node_marker(n), fence_text(n), text_of(n, &n->called_found, n->called_key)};
	struct answer *a = &n->answer[n->answered];

	if (memo_answer(&n->memo, &read, call, wall_us, a)) {
		n->answered++;
		return;
	}
	batch_reset(&n->batch);
	call_add(n, (size_t)(call - n->call));
	batch_carry_out(n, wall_us);
	if (!memo_keep(&n->memo, &read, a))
		node_abort("a probe answers otherwise than a previous one that read the same");
}

void sim_node_call(struct sim_node *n, const struct call *call, size_t count, int64_t wall_us, struct answer *ret_answer)
{
	size_t i = 0;

	arena_reset(&n->arena);
	n->call = call;
	n->answer = ret_answer;
	n->answered = 0;
	if (n->embedded) {
		embedded_call(n, call, count, wall_us, ret_answer);
		return;
	}
	while (i < count) {
		for (; i < count && call[i].kind == CALL_PROBE; i++)
			probe_carry_out(n, &call[i], wall_us);
		batch_reset(&n->batch);
		for (; i < count && batch_accepts(&n->batch, &call[i]); i++)
			call_add(n, i);
		if (n->batch.count)
			batch_carry_out(n, wall_us);
	}
}

void sim_node_publish_to(struct sim_node *n, int64_t (*published)(void *context, struct span channel, struct span message),
			 void *context)
{
	n->redis.model.published = published;
	n->redis.model.listener = context;
}

/* --- what others do to a key ----------------------------------------------------------------------------------------- */

/* A slot of a semaphore. Its key is not kept beside the name. */
static struct span slot_key(struct sim_node *n, struct span name)
{
	size_t head = strlen(n->keys.slots), cut = sizeof(SLOT_PREFIX) - 1;

	buf_clear(&n->slot);
	buf_append(&n->slot, n->keys.slots, head);
	buf_append(&n->slot, name.p + cut, name.n - cut);
	n->name_n = SIZE_MAX;
	n->name_found.known = false;
	return (struct span){buf_begin(&n->slot), buf_length(&n->slot)};
}

static struct span key_of(struct sim_node *n, struct span name)
{
	if (span_starts(name, SPAN(SLOT_PREFIX)))
		return slot_key(n, name);
	if (n->name_at + name.n > n->name_cap)
		n->name = mem_grow(n->name, n->name_cap = n->name_at + name.n, 1);
	if (name.n)
		memcpy(n->name + n->name_at, name.p, name.n);
	n->name_n = name.n;
	n->name_found.known = false;
	return (struct span){n->name, n->name_at + name.n};
}

static struct datum *datum_of(struct sim_node *n, struct span name)
{
	struct span last = {n->name + n->name_at, n->name_n};

	if (found_holds(n, &n->name_found) && last.n == name.n && same8(last.p, name.p, name.n))
		return n->name_found.datum;
	return found_anew(n, &n->name_found, key_of(n, name));
}

void sim_node_delete(struct sim_node *n, struct span name)
{
	struct datum *datum = datum_of(n, name);

	if (datum)
		data_remove(&n->redis.model.data, datum);
}

void sim_node_evict(struct sim_node *n, struct span name)
{
	n->redis.model.evicted += datum_of(n, name) != NULL;
	sim_node_delete(n, name);
}

void sim_node_put(struct sim_node *n, struct span name, struct span value, int64_t expires_ms)
{
	struct datum *datum = datum_of(n, name);

	datum = data_set_text(&n->redis.model.data, datum, key_of(n, name), value);
	datum->expires_ms = expires_ms ? expires_ms : DATUM_FOREVER;
}

void sim_node_put_hash(struct sim_node *n, struct span name, int64_t expires_ms)
{
	struct datum *datum;

	sim_node_delete(n, name);
	datum = data_add_items(&n->redis.model.data, key_of(n, name), DATUM_HASH);
	datum->expires_ms = expires_ms ? expires_ms : DATUM_FOREVER;
	items_put_field(&datum->items, SPAN("field"), SPAN("1"));
}

/* --- what a checker looks at ----------------------------------------------------------------------------------------- */

int64_t sim_node_fence(struct sim_node *n)
{
	int64_t fence = 0;

	if (n->embedded)
		return n->memory ? memory_fence(n->memory) : 0;
	(void)wire_integer(fence_text(n), &fence);
	return fence;
}

bool sim_node_place(struct sim_node *n, struct span name, struct span ticket, int64_t wall_us, int64_t *ret_expires_ms)
{
	const struct datum *datum;
	size_t at;

	if (n->embedded)
		return false; /* one daemon: there are no tickets */
	buf_clear(&n->key);
	buf_append(&n->key, n->marker_key, strlen(n->marker_key) - strlen("!meta"));
	buf_append(&n->key, "q:", 2);
	buf_append(&n->key, name.p, name.n);
	datum = data_peek(&n->redis.model.data, (struct span){buf_begin(&n->key), buf_length(&n->key)});
	if (!datum || !datum_live(datum, wall_us / 1000) || datum->type != DATUM_ZSET || (at = items_find(&datum->items, ticket)) == datum->items.count)
		return false;
	*ret_expires_ms = (int64_t)datum->items.item[at].score;
	return true;
}

bool sim_node_field(struct sim_node *n, struct span key, struct span field, struct span *ret_value)
{
	const struct datum *datum;
	size_t i;

	*ret_value = SPAN("");
	if (n->embedded)
		return embedded_has_field(n, key, field);
	buf_clear(&n->key);
	buf_append(&n->key, n->marker_key, strlen(n->marker_key) - strlen("!meta"));
	buf_append(&n->key, key.p, key.n);
	datum = data_peek(&n->redis.model.data, (struct span){buf_begin(&n->key), buf_length(&n->key)});
	if (!datum || datum->type != DATUM_HASH || (i = items_find(&datum->items, field)) == datum->items.count)
		return false;
	*ret_value = datum->items.item[i].value;
	return true;
}

static int64_t expiry_of(const struct datum *datum)
{
	return datum->expires_ms == DATUM_FOREVER ? 0 : datum->expires_ms;
}

bool sim_node_get(struct sim_node *n, struct span name, int64_t wall_us, struct span *ret_value, int64_t *ret_expires_ms)
{
	const struct datum *datum;

	if (n->embedded)
		return embedded_get(n, name, wall_us, ret_value, ret_expires_ms);
	datum = datum_of(n, name);
	if (!datum || !datum_live(datum, wall_us / 1000))
		return false;
	*ret_value = datum->text;
	*ret_expires_ms = expiry_of(datum);
	return true;
}

void sim_node_each(struct sim_node *n, int64_t wall_us,
		   void (*visit)(void *context, struct span key, struct span value, int64_t expires_ms), void *context)
{
	size_t count, i;
	struct datum **sorted;

	if (n->embedded) {
		embedded_each(n, wall_us, visit, context);
		return;
	}
	sorted = data_sorted(&n->redis.model.data, &count);
	for (i = 0; i < count; i++)
		if (datum_live(sorted[i], wall_us / 1000))
			visit(context, sorted[i]->key, sorted[i]->text, expiry_of(sorted[i]));
	free(sorted);
}

void sim_node_watch(struct sim_node *n, void (*changed)(void *context, struct span key, struct span before, struct span after),
		    void *context)
{
	n->redis.model.data.changed = changed;
	n->redis.model.data.context = context;
}
