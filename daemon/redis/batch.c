/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats calls as RESP. Pure: it must never use a clock or a socket. The order and number of arguments are those of lua/prelude.lua. */
#include "daemon/redis/batch.h"
#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/redis/word.h"

#include <assert.h>
#include <stdlib.h>

#define HEAD_KEYS  3 /* of every script: marker, fence, and whether anybody waits */
#define HEAD_WORDS 5 /* words that batch_write formats */

static void key_append(struct buf *b, struct span prefix, struct span name)
{
	char *at = buf_reserve(b, prefix.n + name.n + WORD_MOST);

	word_commit(b, word_text2(at, prefix, name));
}

static void number_append(struct buf *b, int64_t n)
{
	char *at = buf_reserve(b, NUMBER_MOST);

	word_commit(b, word_number(at, n));
}

/* A slot of a semaphore has a key that no name of a client has. */
static void name_append(struct buf *b, const struct script_keys *k, struct span name)
{
	size_t n = sizeof(SLOT_PREFIX) - 1;

	if (name.p[0] != NAME_ESCAPE)
		key_append(b, span_of(k->prefix), name);
	else if (span_starts(name, SPAN(SLOT_PREFIX)))
		key_append(b, span_of(k->slots), (struct span){name.p + n, name.n - n});
	else
		key_append(b, span_of(k->prefix), (struct span){name.p + 1, name.n - 1});
}

void script_keys_init(struct script_keys *k, const char *prefix, int64_t skew_us, int64_t tolerance_us)
{
	struct buf name;

	*k = (struct script_keys){.prefix = mem_copy(prefix, strlen(prefix))};
	buf_init(&name);
	buf_printf(&name, "redlockd:%s", prefix);
	key_append(&k->head, (struct span){buf_begin(&name), buf_length(&name)}, SPAN("!meta"));
	key_append(&k->head, (struct span){buf_begin(&name), buf_length(&name)}, SPAN("!fence"));
	key_append(&k->head, (struct span){buf_begin(&name), buf_length(&name)}, SPAN("!waits"));
	buf_append(&name, "s:", 3);
	k->slots = mem_copy(buf_begin(&name), buf_length(&name) - 1);
	buf_release(&name);
	number_append(&k->skew, skew_us);
	number_append(&k->ahead, skew_us + tolerance_us);
}

void script_keys_release(struct script_keys *k)
{
	free(k->prefix);
	free(k->slots);
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

static bool call_is_alone(const struct call *call)
{
	return call->kind <= CALL_MARK || call->kind >= CALL_TABLE;
}

bool batch_accepts(const struct batch *b, const struct call *call)
{
	if (!b->count)
		return true;
	if (b->script != SCRIPT_BATCH || call_is_alone(call) || b->count == BATCH_MAX)
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
		if (call->form == FORM_SHARED)
			return 's';
		return call->range == 0 && call->ticket.n == 0 ? 'g' : 'a';
	case CALL_EXTEND:
		if (call->form == FORM_SHARED)
			return 'n';
		if (call->exact || call->beyond)
			return 'e';
		return call->create ? 'K' : 'k';
	case CALL_RELEASE:
		return call->form != FORM_ALONE ? 'R' : 'r';
	case CALL_WITHDRAW:
		return 'x';
	case CALL_LOOK:
		return 'l';
	case CALL_BREAK:
		return 'b';
	default:
		return 0;
	}
}

#define TERMS_WORDS 4
#define ARGS_MOST   10 /* arguments of an operation, its letter included */
#define HOME_WORDS_MAX 64 /* arguments of a HOME */

/* The number of arguments of an entry: its operation is counted, its key and terms are not. */
static unsigned entry_words(const struct entry *e)
{
	switch (e->op) {
	case 'n':
		return 10;
	case 'a':
	case 's':
		return 9;
	case 'e':
		return 8;
	case 'g':
	case 'k':
	case 'K':
		return 3;
	case 'R':
	case 'r':
	case 'x':
	case 'b':
		return 2;
	case 'l':
		return 1;
	default:
		return e->kind == CALL_MARK ? 5 : e->kind == CALL_TABLE ? 4 : e->kind == CALL_TELL ? 3 : e->words;
	}
}

static bool op_has_terms(char op)
{
	return op == 'g' || op == 'k' || op == 'K';
}

static char *op_put(char *at, char op)
{
	memcpy(at, "$1\r\n", 4);
	at[4] = op;
	return word_end(at + 5);
}

/* Writes the terms of an entry, unless they equal the last ones. A term that its operation ignores keeps the last value. */
static char *terms_put(char *at, struct batch *b, char op, const struct terms *of)
{
	struct terms t = {of->px_ms, op == 'k' ? b->terms.not_after_ms : of->not_after_ms, op == 'g' ? of->reserve_ms : b->terms.reserve_ms};

	if (!op_has_terms(op) ||
	    (b->termed && t.px_ms == b->terms.px_ms && t.not_after_ms == b->terms.not_after_ms && t.reserve_ms == b->terms.reserve_ms))
		return at;
	b->terms = t;
	b->termed = true;
	b->words += TERMS_WORDS;
	at = op_put(at, 't');
	at = word_number(at, t.px_ms);
	at = word_number(at, t.not_after_ms);
	return word_number(at, t.reserve_ms);
}

static char *acquire_put(char *at, const struct call *call)
{
	at = word_number(at, call->range);
	at = word_number(at, call->px_ms);
	at = word_number(at, call->not_after_ms);
	at = word_text(at, call->ticket);
	at = word_number(at, call->ticket_ms);
	return word_number(at, call->reserve_ms);
}

static char *extend_put(char *at, const struct call *call)
{
	at = word_text(at, call->new_value);
	at = word_number(at, call->px_ms);
	at = word_number(at, call->fence);
	at = word_number(at, call->beyond);
	at = word_number(at, call->not_after_ms);
	return word_number(at, call->exact ? (call->at_most ? 3 : 2) : call->create);
}

static char *op_fill(char *at, const struct call *call, char op)
{
	at = op_put(at, op);
	if (op != 'l')
		at = word_text(at, op == 'x' ? call->ticket : call->value);
	if (op_has_terms(op) || op == 'a' || op == 's')
		at = word_number(at, call->fence);
	if (op == 'a' || op == 's')
		return acquire_put(at, call);
	if (op == 'e')
		return extend_put(at, call);
	if (op == 'n')
		return word_number(word_text(extend_put(at, call), call->ticket), call->ticket_ms);
	return at;
}

static char *mark_fill(char *at, const struct script_keys *k, const struct call *call)
{
	at = word_text(at, call->marker);
	at = word_text(at, call->new_marker);
	at = word_copy(at, &k->skew);
	at = word_number(at, call->fence);
	return word_number(at, call->not_after_ms);
}

static char *table_fill(char *at, const struct call *call)
{
	at = word_text(at, call->marker);
	at = word_text(at, call->ticket);
	at = word_number(at, call->ticket_ms);
	return word_text(at, call->value);
}

static char *home_fill(char *at, const struct call *call, uint8_t *ret_words)
{
	struct span rest = call->value, word;
	uint8_t words = 3;

	at = word_text(at, call->marker);
	at = word_text(at, call->ticket);
	at = word_text(at, call->name);
	for (; words < HOME_WORDS_MAX && netstring_next(&rest, &word); words++)
		at = word_text(at, word);
	*ret_words = words;
	return at;
}

static char *tell_fill(char *at, const struct call *call)
{
	at = word_text(at, call->marker);
	at = word_text(at, call->ticket);
	return word_text(at, call->value);
}

/* At least as many bytes as the terms and arguments of a call take. */
static size_t args_most(const struct call *call)
{
	size_t more = call->kind == CALL_HOME ? HOME_WORDS_MAX * NUMBER_MOST + call->name.n : 0;

	return (TERMS_WORDS + ARGS_MOST) * NUMBER_MOST + call->value.n + call->new_value.n + call->ticket.n + call->marker.n +
	       call->new_marker.n + more;
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

/* Of a call that is alone. */
static enum script_kind call_script(const struct call *call)
{
	switch (call->kind) {
	case CALL_MARK:
		return SCRIPT_MARK;
	case CALL_TABLE:
		return SCRIPT_TABLE;
	case CALL_TELL:
		return SCRIPT_TELL;
	case CALL_HOME:
		return span_starts(call->value, SPAN("1:j")) ? SCRIPT_JOBS : SCRIPT_HOME;
	default:
		return SCRIPT_PROBE;
	}
}

void batch_add(struct batch *b, const struct script_keys *k, const struct call *call, uint64_t hash)
{
	struct entry entry = {.id = call->id, .hash = hash, .kind = call->kind, .op = call_op(call),
	                      .terms = {call->px_ms, call->not_after_ms, call->reserve_ms}};
	char *at;
	size_t arg;

	assert(batch_accepts(b, call));
	b->script = entry.op ? SCRIPT_BATCH : call_script(call);
	if (entry.op && call_is_marked(call))
		marker_set(b, call->marker);
	at = terms_put(buf_reserve(&b->args, args_most(call)), b, entry.op, &entry.terms);
	arg = (size_t)(at - buf_begin(&b->args));
	if (entry.op) {
		name_append(&b->keys, k, call->name);
		at = op_fill(at, call, entry.op);
	} else if (call->kind == CALL_MARK) {
		at = mark_fill(at, k, call);
	} else if (call->kind == CALL_TABLE) {
		at = table_fill(at, call);
	} else if (call->kind == CALL_HOME) {
		at = home_fill(at, call, &entry.words);
	} else if (call->kind == CALL_TELL) {
		at = tell_fill(at, call);
	}
	word_commit(&b->args, at);
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
	word_commit(&b->args, terms_put(buf_reserve(&b->args, TERMS_WORDS * NUMBER_MOST), b, e->op, &e->terms));
	arg = buf_length(&b->args);
	if (e->arg_end > e->arg)
		buf_append(&b->args, buf_begin(&from->args) + e->arg, e->arg_end - e->arg);
	entry_add(b, *e, arg);
}

void batch_write(const struct batch *b, const struct script_keys *k, const char *sha, struct span text, struct buf *out)
{
	unsigned keys = b->script == SCRIPT_BATCH ? b->count : 0;
	unsigned args = b->script == SCRIPT_BATCH ? 2 + b->words : b->words;
	struct span script = sha ? span_of(sha) : text;
	char *at = buf_reserve(out, HEAD_WORDS * NUMBER_MOST + script.n + buf_length(&k->head) + buf_length(&b->keys) + b->marker_n +
	                                    buf_length(&k->ahead) + buf_length(&b->args));

	at = word_head(at, '*', 3 + HEAD_KEYS + keys + args);
	at = word_text(at, sha ? SPAN("EVALSHA") : SPAN("EVAL"));
	at = word_text(at, script);
	at = word_number(at, HEAD_KEYS + keys);
	at = word_copy(at, &k->head);
	at = word_copy(at, &b->keys);
	if (b->script == SCRIPT_BATCH) {
		at = word_text(at, (struct span){b->marker, b->marker_n});
		at = word_copy(at, &k->ahead);
	}
	word_commit(out, word_copy(at, &b->args));
}
