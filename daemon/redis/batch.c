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

/* The key of a slot is one that no client's name has. */
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

void script_keys_init(struct script_keys *k, const char *prefix, int64_t skew_us, int64_t tolerance_us, const char *id)
{
	struct buf name;

	*k = (struct script_keys){.prefix = mem_text(prefix)};
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
	key_append(&k->id, span_of(id), SPAN(""));
}

void script_keys_release(struct script_keys *k)
{
	free(k->prefix);
	free(k->slots);
	buf_release(&k->head);
	buf_release(&k->skew);
	buf_release(&k->ahead);
	buf_release(&k->id);
}

void batch_init(struct batch *b)
{
	*b = (struct batch){0};
}

void batch_release(struct batch *b)
{
	for (unsigned p = 0; p < BATCH_PARTS; p++) {
		free(b->part[p].entry);
		buf_release(&b->part[p].keys);
		buf_release(&b->part[p].args);
	}
	buf_release(&b->tickets);
	buf_release(&b->notes);
	batch_init(b);
}

void batch_reset(struct batch *b)
{
	for (unsigned p = 0; p < BATCH_PARTS; p++) {
		buf_clear(&b->part[p].keys);
		buf_clear(&b->part[p].args);
		b->part[p].count = 0;
	}
	buf_clear(&b->tickets);
	b->count = b->words = 0;
	b->terms = (struct terms){0};
	b->marker_n = 0;
	b->seen = 0;
	b->marked = b->termed = false;
	memset(b->released, 0, sizeof(b->released));
	memset(b->named, 0, sizeof(b->named));
}

void batch_trim(struct batch *b, size_t bytes)
{
	for (unsigned p = 0; p < BATCH_PARTS; p++) {
		buf_trim(&b->part[p].keys, bytes);
		buf_trim(&b->part[p].args, bytes);
	}
	buf_trim(&b->tickets, bytes);
	buf_trim(&b->notes, bytes);
}

const struct entry *batch_entry(const struct batch *b, unsigned i)
{
	unsigned p = 0;

	for (; i >= b->part[p].count; p++)
		i -= b->part[p].count;
	return &b->part[p].entry[i];
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
		return call->form == FORM_SHARED ? 's' : 'a';
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

#define TERMS_WORDS 3
#define ARGS_MOST   10 /* arguments of an operation, its letter included */
#define HOME_WORDS_MAX 64 /* arguments of a HOME */

/* The number of arguments of an entry, its operation included, its key and terms not. */
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
		return e->kind == CALL_MARK ? 5 : e->kind == CALL_TABLE ? 4 : e->kind == CALL_PUBLISH ? 3 : e->words;
	}
}

static bool op_has_terms(char op)
{
	return op == 'k' || op == 'K';
}

static char *op_put(char *at, char op)
{
	memcpy(at, "$1\r\n", 4);
	at[4] = op;
	return word_end(at + 5);
}

/* Writes the terms of a renewal, unless they equal the last ones. A renewal that sets no key ignores not_after_ms. */
static char *terms_put(char *at, struct batch *b, char op, const struct terms *of)
{
	struct terms t = {.px_ms = of->px_ms, .not_after_ms = op == 'k' ? b->terms.not_after_ms : of->not_after_ms};

	if (!op_has_terms(op) || (b->termed && t.px_ms == b->terms.px_ms && t.not_after_ms == b->terms.not_after_ms))
		return at;
	b->terms = t;
	b->termed = true;
	b->words += TERMS_WORDS;
	at = op_put(at, 't');
	at = word_number(at, t.px_ms);
	return word_number(at, t.not_after_ms);
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

static char *publish_fill(char *at, const struct call *call)
{
	at = word_text(at, call->marker);
	at = word_text(at, call->ticket);
	return word_text(at, call->value);
}

/* An upper bound of the bytes of a call's terms and arguments. */
static size_t args_most(const struct call *call)
{
	size_t more = call->kind == CALL_HOME ? HOME_WORDS_MAX * NUMBER_MOST + call->name.n : 0;

	return (TERMS_WORDS + ARGS_MOST) * NUMBER_MOST + call->value.n + call->new_value.n + call->ticket.n + call->marker.n +
	       call->new_marker.n + more;
}

/* Adds an entry whose bytes are already in keys and args. In args they begin at `arg`. */
static void entry_add(struct batch *b, enum batch_part p, struct entry entry, size_t arg)
{
	if (b->part[p].count == b->part[p].cap) {
		b->part[p].cap = b->part[p].cap ? 2 * b->part[p].cap : 8;
		b->part[p].entry = mem_grow(b->part[p].entry, b->part[p].cap, sizeof(entry));
	}
	entry.key_end = (uint32_t)buf_length(&b->part[p].keys);
	entry.arg = (uint32_t)arg;
	entry.arg_end = (uint32_t)buf_length(&b->part[p].args);
	entry.ticket_end = (uint32_t)buf_length(&b->tickets);
	b->part[p].entry[b->part[p].count++] = entry;
	b->count++;
	if (p == BATCH_OTHERS)
		b->words += entry_words(&entry);
}

/* Of a call that needs its own script call. */
static enum script_kind call_script(const struct call *call)
{
	switch (call->kind) {
	case CALL_MARK:
		return SCRIPT_MARK;
	case CALL_TABLE:
		return SCRIPT_TABLE;
	case CALL_PUBLISH:
		return SCRIPT_PUBLISH;
	case CALL_HOME:
		return span_starts(call->value, SPAN("1:j")) ? SCRIPT_JOBS : SCRIPT_HOME;
	default:
		return SCRIPT_PROBE;
	}
}

static void filter_add(uint64_t *filter, uint64_t hash)
{
	filter[hash >> 6 & (BATCH_FILTER - 1)] |= UINT64_C(1) << (hash & 63);
}

static bool filter_has(const uint64_t *filter, uint64_t hash)
{
	return filter[hash >> 6 & (BATCH_FILTER - 1)] >> (hash & 63) & 1;
}

/* The last token that the acquires propose. */
static int64_t last_proposed(const struct batch *b)
{
	unsigned n = b->part[BATCH_ACQUIRES].count;
	const struct entry *last = n ? &b->part[BATCH_ACQUIRES].entry[n - 1] : NULL;

	return last ? last->fence + last->range : 0;
}

/*
 * Calls about one name keep their order. A release goes first. An acquire follows the releases, unless another call about its name was added before. Later
 * acquires propose larger tokens.
 */
static enum batch_part part_of(const struct batch *b, const struct entry *e)
{
	if (filter_has(b->named, e->hash))
		return BATCH_OTHERS;
	if (e->op == 'a')
		return e->fence > last_proposed(b) ? BATCH_ACQUIRES : BATCH_OTHERS;
	return e->op != 'r' || filter_has(b->released, e->hash) ? BATCH_OTHERS : BATCH_RELEASES;
}

/* Adds an entry to a part whose entries have one form, so that they need no operation. */
static void batch_add_alike(struct batch *b, enum batch_part p, const struct script_keys *k, const struct call *call, struct entry entry)
{
	struct buf *args = &b->part[p].args;
	size_t arg = buf_length(args);
	char *at = word_text(buf_reserve(args, call->value.n + WORD_MOST + NUMBER_MOST), call->value);

	name_append(&b->part[p].keys, k, call->name);
	if (p == BATCH_ACQUIRES) {
		at = word_number(at, call->px_ms);
		buf_append(&b->tickets, call->ticket.p, call->ticket.n);
	}
	word_commit(args, at);
	entry_add(b, p, entry, arg);
}

static void batch_add_other(struct batch *b, const struct script_keys *k, const struct call *call, struct entry entry)
{
	struct buf *args = &b->part[BATCH_OTHERS].args;
	char *at = terms_put(buf_reserve(args, args_most(call)), b, entry.op, &entry.terms);
	size_t arg = (size_t)(at - buf_begin(args));

	if (entry.op) {
		name_append(&b->part[BATCH_OTHERS].keys, k, call->name);
		at = op_fill(at, call, entry.op);
	} else if (call->kind == CALL_MARK) {
		at = mark_fill(at, k, call);
	} else if (call->kind == CALL_TABLE) {
		at = table_fill(at, call);
	} else if (call->kind == CALL_HOME) {
		at = home_fill(at, call, &entry.words);
	} else if (call->kind == CALL_PUBLISH) {
		at = publish_fill(at, call);
	} else {
		at = word_copy(buf_reserve(args, buf_length(&k->id)), &k->id);
		entry.words = 1;
	}
	word_commit(args, at);
	entry_add(b, BATCH_OTHERS, entry, arg);
}

void batch_add(struct batch *b, const struct script_keys *k, const struct call *call, uint64_t hash)
{
	struct entry entry = {.id = call->id, .hash = hash, .kind = call->kind, .op = call_op(call), .fence = call->fence, .range = call->range,
	                      .terms = {call->px_ms, call->not_after_ms, call->reserve_ms, call->ticket_ms}};
	enum batch_part p = part_of(b, &entry);

	assert(batch_accepts(b, call));
	b->script = entry.op ? SCRIPT_BATCH : call_script(call);
	if (entry.op && call_is_marked(call))
		marker_set(b, call->marker);
	if (call->seen > b->seen)
		b->seen = call->seen;
	filter_add(p == BATCH_RELEASES ? b->released : b->named, hash);
	if (p == BATCH_OTHERS)
		batch_add_other(b, k, call, entry);
	else
		batch_add_alike(b, p, k, call, entry);
}

/* Appends the bytes of a buffer from the end of the previous entry on. */
static void slice_append(struct buf *to, const struct buf *from, uint32_t begin, uint32_t end)
{
	if (end > begin)
		buf_append(to, buf_begin(from) + begin, end - begin);
}

void batch_take(struct batch *b, const struct batch *from, unsigned i)
{
	const struct entry *e = batch_entry(from, i);
	enum batch_part p = i < from->part[BATCH_RELEASES].count ? BATCH_RELEASES :
			    i < from->part[BATCH_RELEASES].count + from->part[BATCH_ACQUIRES].count ? BATCH_ACQUIRES : BATCH_OTHERS;
	bool first = e == from->part[p].entry;
	struct buf *args = &b->part[p].args;
	size_t arg;

	b->script = from->script;
	b->seen = from->seen;
	if (from->marked)
		marker_set(b, (struct span){from->marker, from->marker_n});
	slice_append(&b->part[p].keys, &from->part[p].keys, first ? 0 : e[-1].key_end, e->key_end);
	if (p == BATCH_OTHERS)
		word_commit(args, terms_put(buf_reserve(args, TERMS_WORDS * NUMBER_MOST), b, e->op, &e->terms));
	arg = buf_length(args);
	slice_append(args, &from->part[p].args, e->arg, e->arg_end);
	if (p == BATCH_ACQUIRES)
		slice_append(&b->tickets, &from->tickets, first ? 0 : e[-1].ticket_end, e->ticket_end);
	entry_add(b, p, *e, arg);
}

/* What only the long way reads of the acquires: see lua/free.lua. */
static void notes_fill(struct batch *b)
{
	int64_t first = b->part[BATCH_ACQUIRES].entry[0].fence;
	struct terms last = {.not_after_ms = -1};
	uint32_t ticket = 0;

	buf_clear(&b->notes);
	for (unsigned i = 0; i < b->part[BATCH_ACQUIRES].count; i++) {
		const struct entry *e = &b->part[BATCH_ACQUIRES].entry[i];
		const struct terms *t = &e->terms;
		char *at = buf_reserve(&b->notes, 5 * NUMBER_MOST + e->ticket_end - ticket);

		if (!i || t->not_after_ms != last.not_after_ms || t->ticket_ms != last.ticket_ms || t->reserve_ms != last.reserve_ms) {
			last = *t;
			*at++ = 't';
			at = word_digits(at, (uint64_t)t->not_after_ms);
			*at++ = ' ';
			at = word_digits(at, (uint64_t)t->ticket_ms);
			*at++ = ' ';
			at = word_digits(at, (uint64_t)t->reserve_ms);
			*at++ = '\n';
		}
		at = word_digits(at, (uint64_t)(e->fence - first));
		*at++ = ' ';
		at = word_digits(at, (uint64_t)e->range);
		*at++ = ' ';
		if (e->ticket_end > ticket)
			at = word_bytes(at, buf_begin(&b->tickets) + ticket, e->ticket_end - ticket);
		*at++ = '\n';
		ticket = e->ticket_end;
		word_commit(&b->notes, at);
	}
}

/* What the acquires share: the smallest not_after_ms, the tokens that they propose, and the notes. */
static char *acquires_put(char *at, const struct batch *b)
{
	const struct entry *e = b->part[BATCH_ACQUIRES].entry, *end = e + b->part[BATCH_ACQUIRES].count;
	int64_t not_after_ms = 0;

	for (; e < end; e++) {
		if (e->terms.not_after_ms && (!not_after_ms || e->terms.not_after_ms < not_after_ms))
			not_after_ms = e->terms.not_after_ms;
	}
	at = word_number(at, not_after_ms);
	at = word_number(at, b->part[BATCH_ACQUIRES].entry[0].fence);
	at = word_number(at, last_proposed(b));
	at = word_text(at, (struct span){buf_begin(&b->notes), buf_length(&b->notes)});
	return word_copy(at, &b->part[BATCH_ACQUIRES].args);
}

#define ALIKE_WORDS (HEAD_WORDS + 8) /* words that batch_write formats for the batch script */

void batch_write(struct batch *b, const struct script_keys *k, const char *sha, struct span text, struct buf *out)
{
	bool whole = b->script == SCRIPT_BATCH;
	unsigned releases = b->part[BATCH_RELEASES].count, acquires = b->part[BATCH_ACQUIRES].count, keys = whole ? b->count : 0;
	unsigned args = b->words + (whole ? 5 + releases + (acquires ? 4 + 2 * acquires : 0) : 0);
	struct span script = sha ? span_of(sha) : text;
	size_t most = ALIKE_WORDS * NUMBER_MOST + script.n + buf_length(&k->head) + b->marker_n + buf_length(&k->ahead);
	char *at;

	if (acquires)
		notes_fill(b);
	most += acquires ? buf_length(&b->notes) : 0;
	for (unsigned p = 0; p < BATCH_PARTS; p++)
		most += buf_length(&b->part[p].keys) + buf_length(&b->part[p].args);
	at = buf_reserve(out, most);
	at = word_head(at, '*', 3 + HEAD_KEYS + keys + args);
	at = word_text(at, sha ? SPAN("EVALSHA") : SPAN("EVAL"));
	at = word_text(at, script);
	at = word_number(at, HEAD_KEYS + keys);
	at = word_copy(at, &k->head);
	for (unsigned p = 0; p < BATCH_PARTS; p++)
		at = word_copy(at, &b->part[p].keys);
	if (whole) {
		at = word_text(at, (struct span){b->marker, b->marker_n});
		at = word_copy(at, &k->ahead);
		at = word_number(at, b->seen);
		at = word_number(at, releases);
		at = word_number(at, acquires);
		at = word_copy(at, &b->part[BATCH_RELEASES].args);
		if (acquires)
			at = acquires_put(at, b);
	}
	word_commit(out, word_copy(at, &b->part[BATCH_OTHERS].args));
}
