/* SPDX-License-Identifier: BSD-2-Clause */
/* See claim.h. */
#include "daemon/core/lock/claim.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/event/core.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct remark remark_read(struct span note, struct span trace)
{
	return (struct remark){note, trace_is_sound(trace) ? trace : SPAN("")};
}

/* Writes its bytes, the note first; `to` has room for both. */
static void remark_write(char *to, struct remark remark)
{
	if (remark.note.n > 0)
		memcpy(to, remark.note.p, remark.note.n);
	if (remark.trace.n > 0)
		memcpy(to + remark.note.n, remark.trace.p, remark.trace.n);
}

void reply_remark(struct reply *r, struct remark remark)
{
	if (remark.note.n > 0)
		reply_text(r, "note", remark.note);
	if (remark.trace.n > 0)
		reply_text(r, "trace", remark.trace);
}

void kept_remark_set(struct kept_remark *k, struct remark remark)
{
	size_t n = remark.note.n + remark.trace.n;
	char *bytes = n > 0 ? mem_alloc(n) : NULL;

	remark_write(bytes, remark);
	mem_free(k->bytes);
	*k = (struct kept_remark){bytes, (uint16_t)remark.note.n, remark.trace.n > 0};
}

void kept_remark_release(struct kept_remark *k)
{
	mem_free(k->bytes);
}

void holder_text_put_question(struct buf *out, const struct holder_text *c)
{
	netstring_put(out, c->daemon);
	netstring_put(out, c->name);
	netstring_put_int(out, c->number);
}

void holder_text_put(struct buf *out, const struct holder_text *c)
{
	holder_text_put_question(out, c);
	netstring_put_int(out, c->held_ms);
	netstring_put(out, c->label);
	netstring_put(out, c->peer);
	netstring_put_int(out, c->pid);
	netstring_put_int(out, c->uid);
	netstring_put(out, c->owner);
	netstring_put(out, c->remark.note);
	netstring_put(out, c->remark.trace);
}

/* The characters of a daemon's id: see core.c. A channel has the id as its name. */
static bool id_is_sound(struct span id)
{
	for (size_t i = 0; i < id.n; i++) {
		char c = id.p[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_'))
			return false;
	}
	return id.n > 0 && id.n < DAEMON_ID_MAX;
}

static bool take_text(struct span *rest, size_t most, struct span *ret_text)
{
	return netstring_next(rest, ret_text) && ret_text->n <= most;
}

static bool take_number(struct span *rest, int64_t least, int64_t *ret_number)
{
	return netstring_next_int(rest, ret_number) && *ret_number >= least;
}

static bool take_head(struct span *rest, struct holder_text *c)
{
	return rest->n <= CARD_MAX && netstring_next(rest, &c->daemon) && id_is_sound(c->daemon) && netstring_next(rest, &c->name) && c->name.n > 0 &&
	       c->name.n <= NAME_MAX_BYTES && take_number(rest, 1, &c->number);
}

bool holder_text_read_question(struct span message, struct holder_text *ret_card)
{
	*ret_card = (struct holder_text){.pid = -1, .uid = -1};
	return take_head(&message, ret_card);
}

static bool take_holder(struct span *rest, struct holder_text *c, struct span *ret_note)
{
	return take_number(rest, 0, &c->held_ms) && c->held_ms <= INT64_MAX / 2000 && take_text(rest, CARD_TEXT_MAX, &c->label) &&
	       take_text(rest, CARD_TEXT_MAX, &c->peer) && take_number(rest, -1, &c->pid) && take_number(rest, -1, &c->uid) &&
	       take_text(rest, CARD_OWNER_MAX, &c->owner) && take_text(rest, CARD_TEXT_MAX, ret_note);
}

bool holder_text_read(struct span message, struct holder_text *c)
{
	struct span note, trace = SPAN("");

	*c = (struct holder_text){.pid = -1, .uid = -1};
	if (!take_head(&message, c) || !take_holder(&message, c, &note) || (message.n > 0 && !netstring_next(&message, &trace)))
		return false;
	c->remark = remark_read(note, trace);
	return true;
}

static size_t text_put(char *out, size_t at, struct span text)
{
	if (text.n > 0)
		memcpy(out + at, text.p, text.n);
	return at + text.n;
}

char *label_put(char *at, struct span label)
{
	bool quoted = span_starts(label, SPAN("@"));

	for (size_t i = 0; i < label.n; i++)
		quoted |= label.p[i] == '=' || label.p[i] == ':';
	if (!quoted)
		return at + text_put(at, 0, label);
	*at++ = '\'';
	for (size_t i = 0; i < label.n; i++)
		*at++ = label.p[i] == '\'' ? '?' : label.p[i];
	*at++ = '\'';
	return at;
}

size_t holder_text_who(const struct holder_text *c, char *out)
{
	size_t at = (size_t)(label_put(out, c->label) - out);

	if (at > 0 && (c->pid >= 0 || c->peer.n > 0))
		out[at++] = ' ';
	if (c->pid < 0)
		return text_put(out, at, c->peer);
	return at + (size_t)snprintf(out + at, CARD_WHO_MAX - at, "pid=%" PRId64 " uid=%" PRId64, c->pid, c->uid);
}

const char *loss_word(enum loss loss)
{
	static const char *const word[] = {
#define LOSS_ROW(id, text) [LOSS_##id] = (text),
		LOSSES(LOSS_ROW)
#undef LOSS_ROW
	};

	return word[loss];
}

bool loss_find(struct span word, enum loss *ret_loss)
{
#define LOSS_ROW(id, text) \
	if (span_equal(word, SPAN(text))) { \
		*ret_loss = LOSS_##id; \
		return true; \
	}
	LOSSES(LOSS_ROW)
#undef LOSS_ROW
	return false;
}

void claim_set_texts(struct claim *c, struct span owner, struct remark remark)
{
	size_t n = owner.n + remark.note.n + remark.trace.n;

	c->texts = n > 0 ? mem_alloc(n) : NULL;
	if (owner.n > 0)
		memcpy(c->texts, owner.p, owner.n);
	c->owner_n = (uint16_t)owner.n;
	c->note_n = (uint16_t)remark.note.n;
	c->traced = remark.trace.n > 0;
	if (n > owner.n)
		remark_write(c->texts + owner.n, remark);
}

void claim_set_remark(struct claim *c, struct remark remark)
{
	char *former = c->texts;

	claim_set_texts(c, claim_owner(c), remark);
	mem_free(former);
}

bool claim_same_owner(const struct claim *a, const struct claim *b)
{
	return claim_is_of(a, b->session, claim_owner(b));
}

struct reader {
	struct map_node node;
	struct claim *claim;
};

struct wanted {
	const struct lock *lock;
	const struct session *session;
	struct span owner;
};

void readers_init(struct readers *r, const uint64_t key[2])
{
	map_init(&r->map, key);
	pool_init(&r->pool, sizeof(struct reader));
}

void readers_release(struct readers *r)
{
	map_release(&r->map);
	pool_release(&r->pool);
}

static struct wanted wanted_of(const struct claim *c)
{
	return (struct wanted){c->lock, c->session, claim_owner(c)};
}

static uint64_t wanted_hash(const struct readers *r, const struct wanted *w)
{
	uint64_t hash = siphash_word(r->map.key, siphash_word(r->map.key, (uintptr_t)w->lock) ^ (uintptr_t)w->session);

	return w->owner.n > 0 ? hash ^ map_hash(&r->map, w->owner.p, w->owner.n) : hash;
}

static bool is_wanted(const struct map_node *node, const void *wanted, size_t n)
{
	const struct claim *c = container_of(node, struct reader, node)->claim;
	const struct wanted *w = wanted;

	(void)n;
	return c->lock == w->lock && claim_is_of(c, w->session, w->owner);
}

static bool is_claim(const struct map_node *node, const void *claim, size_t n)
{
	(void)n;
	return container_of(node, struct reader, node)->claim == claim;
}

static struct reader *reader_find(const struct readers *r, const struct wanted *w)
{
	struct map_node *node = map_find(&r->map, wanted_hash(r, w), w, sizeof(*w), is_wanted);

	return node ? container_of(node, struct reader, node) : NULL;
}

void readers_add(struct readers *r, struct claim *c)
{
	struct reader *reader = pool_get(&r->pool);
	const struct wanted w = wanted_of(c);

	reader->claim = c;
	map_insert(&r->map, &reader->node, wanted_hash(r, &w));
}

void readers_remove(struct readers *r, const struct claim *c)
{
	const struct wanted w = wanted_of(c);
	struct reader *reader = container_of(map_find(&r->map, wanted_hash(r, &w), c, sizeof(*c), is_claim), struct reader, node);

	map_remove(&r->map, &reader->node);
	pool_put(&r->pool, reader);
}

struct claim *readers_find(const struct readers *r, const struct lock *l, const struct session *session, struct span owner)
{
	const struct wanted w = {l, session, owner};
	const struct reader *reader = reader_find(r, &w);

	return reader ? reader->claim : NULL;
}
