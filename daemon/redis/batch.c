/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats calls as RESP. Pure: it must never use a clock or a socket. The order and number of arguments are those of lua/prelude.lua. */
#include "daemon/redis/batch.h"
#include "daemon/base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define HEAD_KEYS 3 /* of every script: marker, fence, and whether anybody waits */

static size_t decimal_put(char *at, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	memcpy(at, digits + i, sizeof(digits) - i);
	return sizeof(digits) - i;
}

/* "$12\r\n" or "*12\r\n" */
static size_t head_put(char *at, char type, uint64_t n)
{
	size_t k = 0;

	at[k++] = type;
	k += decimal_put(at + k, n);
	at[k++] = '\r';
	at[k++] = '\n';
	return k;
}

static void array_append(struct buf *b, uint64_t n)
{
	buf_commit(b, head_put(buf_reserve(b, 32), '*', n));
}

static void bulk_append2(struct buf *b, struct span first, struct span second)
{
	char *at = buf_reserve(b, first.n + second.n + 32);
	size_t k = head_put(at, '$', first.n + second.n);

	if (first.n)
		memcpy(at + k, first.p, first.n);
	k += first.n;
	if (second.n)
		memcpy(at + k, second.p, second.n);
	k += second.n;
	at[k++] = '\r';
	at[k++] = '\n';
	buf_commit(b, k);
}

static void bulk_append(struct buf *b, struct span text)
{
	bulk_append2(b, text, (struct span){"", 0});
}

static void number_append(struct buf *b, int64_t n)
{
	char digits[24];
	size_t k = 0;

	if (n < 0)
		digits[k++] = '-';
	k += decimal_put(digits + k, n < 0 ? -(uint64_t)n : (uint64_t)n);
	bulk_append(b, (struct span){digits, k});
}

void script_keys_init(struct script_keys *k, const char *prefix, int64_t skew_us, int64_t tolerance_us)
{
	struct buf name;

	*k = (struct script_keys){.prefix = mem_copy(prefix, strlen(prefix))};
	buf_init(&name);
	buf_printf(&name, "redlockd:%s", prefix);
	bulk_append2(&k->head, (struct span){buf_begin(&name), buf_length(&name)}, SPAN("!meta"));
	bulk_append2(&k->head, (struct span){buf_begin(&name), buf_length(&name)}, SPAN("!fence"));
	bulk_append2(&k->head, (struct span){buf_begin(&name), buf_length(&name)}, SPAN("!waits"));
	buf_release(&name);
	number_append(&k->skew, skew_us);
	number_append(&k->ahead, skew_us + tolerance_us);
}

void script_keys_release(struct script_keys *k)
{
	free(k->prefix);
	buf_release(&k->head);
	buf_release(&k->skew);
	buf_release(&k->ahead);
}

void batch_init(struct batch *b)
{
	*b = (struct batch){0};
}

void batch_release(struct batch *b)
{
	free(b->entry);
	buf_release(&b->keys);
	buf_release(&b->args);
	batch_init(b);
}

void batch_reset(struct batch *b)
{
	buf_clear(&b->keys);
	buf_clear(&b->args);
	b->count = b->words = 0;
	b->terms = (struct terms){0};
	b->marker_n = 0;
	b->marked = b->termed = false;
}

static bool call_is_marked(const struct call *call)
{
	/* RELEASE and WITHDRAW ignore the marker */
	return call->kind != CALL_RELEASE && call->kind != CALL_WITHDRAW;
}

bool batch_accepts(const struct batch *b, const struct call *call)
{
	if (!b->count)
		return true;
	if (b->script != SCRIPT_BATCH || call->kind == CALL_PROBE || call->kind == CALL_MARK || b->count == BATCH_MAX)
		return false;
	return !b->marked || !call_is_marked(call) || span_equal((struct span){b->marker, b->marker_n}, call->marker);
}

static void marker_set(struct batch *b, struct span marker)
{
	assert(marker.n <= MARKER_MAX);
	if (marker.n)
		memcpy(b->marker, marker.p, marker.n);
	b->marker_n = marker.n;
	b->marked = true;
}

/* The operation that needs the fewest arguments: see lua/prelude.lua. */
static char call_op(const struct call *call)
{
	switch (call->kind) {
	case CALL_ACQUIRE:
		return call->range == 0 && call->ticket.n == 0 ? 'g' : 'a';
	case CALL_EXTEND:
		if (call->exact || call->beyond || call->prior.n > 0 || !span_equal(call->value, call->new_value))
			return 'e';
		return call->create ? 'K' : 'k';
	case CALL_RELEASE:
		return call->prior.n > 0 ? 'R' : 'r';
	case CALL_WITHDRAW:
		return 'x';
	case CALL_LOOK:
		return 'l';
	default:
		return 0;
	}
}

#define TERMS_WORDS 4

/* The number of arguments of an entry: its operation is counted, its key and terms are not. */
static unsigned entry_words(const struct entry *e)
{
	switch (e->op) {
	case 'a':
	case 'e':
		return 9;
	case 'g':
	case 'k':
	case 'K':
	case 'R':
		return 3;
	case 'r':
	case 'x':
		return 2;
	case 'l':
		return 1;
	default:
		return e->kind == CALL_MARK ? 5 : 0;
	}
}

static bool op_has_terms(char op)
{
	return op == 'g' || op == 'k' || op == 'K';
}

static void op_append(struct buf *args, char op)
{
	const char text[] = {'$', '1', '\r', '\n', op, '\r', '\n'};

	buf_append(args, text, sizeof(text));
}

/* Writes the terms of an entry, unless they equal the last ones. A term that its operation ignores keeps the last value. */
static void terms_use(struct batch *b, char op, const struct terms *of)
{
	struct terms t = {of->px_ms, op == 'k' ? b->terms.not_after_ms : of->not_after_ms, op == 'g' ? of->reserve_ms : b->terms.reserve_ms};

	if (!op_has_terms(op) ||
	    (b->termed && t.px_ms == b->terms.px_ms && t.not_after_ms == b->terms.not_after_ms && t.reserve_ms == b->terms.reserve_ms))
		return;
	b->terms = t;
	b->termed = true;
	b->words += TERMS_WORDS;
	op_append(&b->args, 't');
	number_append(&b->args, t.px_ms);
	number_append(&b->args, t.not_after_ms);
	number_append(&b->args, t.reserve_ms);
}

static void acquire_append(struct buf *args, const struct call *call)
{
	number_append(args, call->range);
	number_append(args, call->px_ms);
	number_append(args, call->not_after_ms);
	bulk_append(args, call->ticket);
	number_append(args, call->ticket_ms);
	number_append(args, call->reserve_ms);
}

static void extend_append(struct buf *args, const struct call *call)
{
	bulk_append(args, call->new_value);
	number_append(args, call->px_ms);
	number_append(args, call->fence);
	number_append(args, call->beyond);
	number_append(args, call->not_after_ms);
	bulk_append(args, call->exact ? (call->at_most ? SPAN("3") : SPAN("2")) : call->create ? SPAN("1") : SPAN("0"));
	bulk_append(args, call->prior);
}

static void op_fill(struct batch *b, const struct script_keys *k, const struct call *call, char op)
{
	bulk_append2(&b->keys, span_of(k->prefix), call->name);
	op_append(&b->args, op);
	if (op != 'l')
		bulk_append(&b->args, op == 'x' ? call->ticket : call->value);
	if (op_has_terms(op) || op == 'a')
		number_append(&b->args, call->fence);
	if (op == 'a')
		acquire_append(&b->args, call);
	else if (op == 'e')
		extend_append(&b->args, call);
	else if (op == 'R')
		bulk_append(&b->args, call->prior);
}

static void mark_fill(struct batch *b, const struct script_keys *k, const struct call *call)
{
	bulk_append(&b->args, call->marker);
	bulk_append(&b->args, call->new_marker);
	buf_append(&b->args, buf_begin(&k->skew), buf_length(&k->skew));
	number_append(&b->args, call->fence);
	number_append(&b->args, call->not_after_ms);
}

/* Adds an entry whose bytes are in keys and args already; in args they begin at `arg`. */
static void entry_add(struct batch *b, struct entry entry, size_t arg)
{
	if (b->count == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 8;
		b->entry = mem_grow(b->entry, b->cap, sizeof(*b->entry));
	}
	entry.key_end = (uint32_t)buf_length(&b->keys);
	entry.arg = (uint32_t)arg;
	entry.arg_end = (uint32_t)buf_length(&b->args);
	b->entry[b->count++] = entry;
	b->words += entry_words(&entry);
}

void batch_add(struct batch *b, const struct script_keys *k, const struct call *call, uint64_t hash)
{
	struct entry entry = {.id = call->id, .hash = hash, .kind = call->kind, .op = call_op(call),
	                      .terms = {call->px_ms, call->not_after_ms, call->reserve_ms}};
	size_t arg;

	assert(batch_accepts(b, call));
	b->script = entry.op ? SCRIPT_BATCH : call->kind == CALL_MARK ? SCRIPT_MARK : SCRIPT_PROBE;
	if (entry.op && call_is_marked(call))
		marker_set(b, call->marker);
	terms_use(b, entry.op, &entry.terms);
	arg = buf_length(&b->args);
	if (entry.op)
		op_fill(b, k, call, entry.op);
	else if (call->kind == CALL_MARK)
		mark_fill(b, k, call);
	entry_add(b, entry, arg);
}

void batch_take(struct batch *b, const struct batch *from, unsigned i)
{
	const struct entry *e = &from->entry[i];
	uint32_t key = i ? e[-1].key_end : 0;
	size_t arg;

	b->script = from->script;
	if (from->marked)
		marker_set(b, (struct span){from->marker, from->marker_n});
	if (e->key_end > key)
		buf_append(&b->keys, buf_begin(&from->keys) + key, e->key_end - key);
	terms_use(b, e->op, &e->terms);
	arg = buf_length(&b->args);
	if (e->arg_end > e->arg)
		buf_append(&b->args, buf_begin(&from->args) + e->arg, e->arg_end - e->arg);
	entry_add(b, *e, arg);
}

void batch_write(const struct batch *b, const struct script_keys *k, const char *sha, struct span text, struct buf *out)
{
	unsigned keys = b->script == SCRIPT_BATCH ? b->count : 0;
	unsigned args = b->script == SCRIPT_BATCH ? 2 + b->words : b->words;

	array_append(out, 3 + HEAD_KEYS + keys + args);
	bulk_append(out, sha ? SPAN("EVALSHA") : SPAN("EVAL"));
	bulk_append(out, sha ? span_of(sha) : text);
	number_append(out, HEAD_KEYS + keys);
	buf_append(out, buf_begin(&k->head), buf_length(&k->head));
	buf_append(out, buf_begin(&b->keys), buf_length(&b->keys));
	if (b->script == SCRIPT_BATCH) {
		bulk_append(out, (struct span){b->marker, b->marker_n});
		buf_append(out, buf_begin(&k->ahead), buf_length(&k->ahead));
	}
	buf_append(out, buf_begin(&b->args), buf_length(&b->args));
}
