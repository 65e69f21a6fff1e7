/* SPDX-License-Identifier: BSD-2-Clause */
/* See history.h. */
#include "daemon/core/reply/history.h"

#include "daemon/base/mem.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"

#include <stdio.h>
#include <string.h>

#define END_BYTES 16 /* the longest word with its NUL */
#define WHO_BYTES 96 /* bytes that describe a holder; a longer label is cut */

struct hold {
	struct instant granted_at, ended_at;
	int64_t fence;
	char end[END_BYTES];
	char who[WHO_BYTES];
	size_t who_n;
};

struct former_name {
	struct map_node node;
	TAILQ_ENTRY(former_name) by_age;
	unsigned holds, next; /* hold[next] is the oldest, and is overwritten next */
	struct hold hold[FORMER_HOLDS];
	size_t n;
	char name[];
};

struct formers {
	struct map map;
	TAILQ_HEAD(, former_name) by_age; /* the most recently used one is the last */
	unsigned count;
};

MAP_MATCH(name_matches, struct former_name, node, name, n)

static struct former_name *former_find(struct formers *all, struct span name, uint64_t *ret_hash)
{
	struct map_node *node;

	*ret_hash = map_hash(&all->map, name.p, name.n);
	node = map_find(&all->map, *ret_hash, name.p, name.n, name_matches);
	return node ? container_of(node, struct former_name, node) : NULL;
}

static void former_drop(struct formers *all, struct former_name *f)
{
	map_remove(&all->map, &f->node);
	TAILQ_REMOVE(&all->by_age, f, by_age);
	all->count--;
	mem_free(f);
}

static struct former_name *former_add(struct formers *all, struct span name, uint64_t hash)
{
	struct former_name *f = mem_alloc(sizeof(*f) + name.n);

	if (all->count == FORMER_NAMES)
		former_drop(all, TAILQ_FIRST(&all->by_age));
	f->n = name.n;
	memcpy(f->name, name.p, name.n);
	map_insert(&all->map, &f->node, hash);
	all->count++;
	return f;
}

static struct formers *formers_of(struct request_context *x)
{
	if (!x->formers) {
		x->formers = mem_alloc(sizeof(*x->formers));
		map_init(&x->formers->map, x->core->conf.seed);
		TAILQ_INIT(&x->formers->by_age);
	}
	return x->formers;
}

void former_note(struct request_context *x, const struct claim *c, const char *end)
{
	struct formers *all;
	struct former_name *f;
	struct hold *h;
	uint64_t hash;
	char who[WHO_MAX];
	size_t n;

	if (c->session->principal) /* it is a part of a LOCKALL that is not granted yet, or of a permit */
		return;
	all = formers_of(x);
	f = former_find(all, lock_name(c->lock), &hash);
	if (f)
		TAILQ_REMOVE(&all->by_age, f, by_age);
	else
		f = former_add(all, lock_name(c->lock), hash);
	TAILQ_INSERT_TAIL(&all->by_age, f, by_age);
	h = &f->hold[f->next];
	f->next = (f->next + 1) % FORMER_HOLDS;
	f->holds += f->holds < FORMER_HOLDS;
	n = session_who(c->session, who);
	*h = (struct hold){.granted_at = c->granted_at, .ended_at = x->core->now, .fence = c->token, .who_n = n < WHO_BYTES ? n : WHO_BYTES};
	memcpy(h->who, who, h->who_n);
	core_keep(h->end, sizeof(h->end), span_of(end));
}

static void row_former(struct request_context *x, struct session *s, struct span tag, const struct hold *h, unsigned pos)
{
	struct reply r;

	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("former"));
	reply_int(&r, "pos", pos);
	reply_text(&r, "holder", (struct span){h->who, h->who_n});
	reply_int(&r, "fence", h->fence);
	reply_ms(&r, "held_ms", instant_diff(h->ended_at, h->granted_at));
	reply_ms(&r, "ended_ms", instant_diff(x->core->now, h->ended_at));
	reply_text(&r, "end", span_of(h->end));
	row_end(x, s, &r);
}

unsigned former_rows(struct request_context *x, struct session *s, struct span tag, struct span name)
{
	uint64_t hash;
	const struct former_name *f = x->formers ? former_find(x->formers, name, &hash) : NULL;

	if (!f)
		return 0;
	for (unsigned i = 1; i <= f->holds; i++)
		row_former(x, s, tag, &f->hold[(f->next + FORMER_HOLDS - i) % FORMER_HOLDS], i);
	return f->holds;
}

void formers_free(struct request_context *x)
{
	if (!x->formers)
		return;
	while (!TAILQ_EMPTY(&x->formers->by_age))
		former_drop(x->formers, TAILQ_FIRST(&x->formers->by_age));
	map_release(&x->formers->map);
	mem_free(x->formers);
	x->formers = NULL;
}

#define COMPLETE_DEFAULT 10
#define COMPLETE_MOST    1000
#define WORK_OF_LOOK     4 /* in units of about 50 ns, like the cost of checking the rules */
#define WORK_MOST        (COMPLETE_LOOKS * WORK_OF_LOOK)

struct note {
	struct user *user;
	size_t n; /* length of the name, which follows */
};

static struct name_history *name_history_here(struct request_context *x)
{
	struct core *core = x->core;
	uint64_t key[2];

	if (x->history)
		return x->history;
	key[0] = rng_next(&core->rng);
	key[1] = rng_next(&core->rng);
	x->history = mem_alloc(sizeof(*x->history));
	x->history->timer.kind = TIMER_HISTORY;
	users_init(&x->history->users, key);
	roll_init(&x->history->known, key, NAMES_KNOWN);
	return x->history;
}

void name_history_free(struct request_context *x)
{
	if (!x->history)
		return;
	heap_cancel(&x->core->timers, &x->history->timer);
	buf_release(&x->history->notes);
	roll_release(&x->history->known);
	users_release(&x->history->users);
	mem_free(x->history);
	x->history = NULL;
}

/* "user NAME" of AUTH. Without that it is the peer, as limits distinguish peers: one with many addresses is one user. */
static struct span user_name(const struct session *s, char out[USER_MAX])
{
	struct span address = session_address(s);
	int length;

	_Static_assert(PEER_ORIGIN_MAX <= USER_MAX, "there is room for a peer");
	if (!s->identity || !s->identity->user)
		return (struct span){out, peer_origin(s->is_unix, s->uid, address.p, address.n, out)};
	length = snprintf(out, USER_MAX, "user %s", s->identity->user);
	return (struct span){out, length < USER_MAX ? (size_t)length : USER_MAX - 1};
}

/* Returns the user who gets the session's grants from now on. */
static struct user *name_history_user(struct request_context *x, struct session *s)
{
	char name[USER_MAX];

	if (!s->user) {
		s->user = users_find_or_add(&name_history_here(x)->users, user_name(s, name));
		s->user->refs++;
	}
	return s->user;
}

void name_history_grant(struct request_context *x, struct session *s, struct span name)
{
	struct note note = {s->user ? s->user : name_history_user(x, s), name.n};
	struct name_history *w = x->history;
	char *at;

	if (note.user->notes == NOTES_OF_USER || w->count == NOTES_MOST)
		return;
	if (w->count++ == 0 && !timer_is_set(&w->timer))
		heap_set(&x->core->timers, &w->timer, instant_add(x->core->now, NOTES_EVERY_US));
	note.user->notes++;
	at = buf_reserve(&w->notes, sizeof(note) + name.n);
	memcpy(at, &note, sizeof(note));
	memcpy(at + sizeof(note), name.p, name.n);
	buf_commit(&w->notes, sizeof(note) + name.n);
}

/* Sorts the notes into names. */
static void name_history_look(struct name_history *w)
{
	struct note note;

	if (w->count == 0)
		return;
	for (const char *at = buf_begin(&w->notes), *end = at + buf_length(&w->notes); at < end; at += sizeof(note) + note.n) {
		memcpy(&note, at, sizeof(note));
		note.user->notes = 0;
		roll_note(&note.user->recent, at + sizeof(note), note.n);
		roll_note(&w->known, at + sizeof(note), note.n);
	}
	buf_clear(&w->notes);
	w->count = 0;
	users_trim(&w->users);
}

void name_history_fired(struct request_context *x)
{
	name_history_look(x->history);
}

/* --- the requests ---------------------------------------------------------------------------------------------------- */

/* False: the request was answered. */
static bool request_limit(struct request_context *x, struct session *s, size_t most, size_t *limit)
{
	const struct request *q = &x->request;

	if (!request_has(q, FIELD_LIMIT))
		return true;
	if (q->field[FIELD_LIMIT].number > (int64_t)most) {
		send_invalid(x, s, ERROR_LIMIT, "limit may be at most %zu", most);
		return false;
	}
	*limit = (size_t)q->field[FIELD_LIMIT].number;
	return true;
}

/* False: the session may not look at the name. */
static bool name_send_row(struct request_context *x, struct session *s, const struct roll_item *item, unsigned *work)
{
	struct span name = {item->text, item->n};
	struct reply r;

	*work += WORK_OF_LOOK;
	if (!session_may_look_at(x->core, s, name, work))
		return false;
	row_begin(x, x->request.tag, &r);
	reply_text(&r, "name", name);
	row_end(x, s, &r);
	return true;
}

static bool item_starts(const struct roll_item *item, struct span prefix)
{
	return span_starts((struct span){item->text, item->n}, prefix);
}

void serve_COMPLETE(struct request_context *x, struct session *s)
{
	struct span prefix = x->request.words > 0 ? x->request.word[0] : SPAN("");
	size_t limit = COMPLETE_DEFAULT, begin = s->unsent, n = 0;
	const struct roll_item *item;
	unsigned work = 0;

	if (!request_limit(x, s, COMPLETE_MOST, &limit))
		return;
	if (prefix.n > NAME_MAX_BYTES) {
		send_invalid(x, s, ERROR_LIMIT, "a prefix may have at most %d bytes, as a name", NAME_MAX_BYTES);
		return;
	}
	name_history_look(name_history_here(x));
	item = roll_from(&x->history->known, prefix.p, prefix.n);
	for (; item && n < limit && work < WORK_MOST && item_starts(item, prefix) && !rows_are_long(x, s->unsent - begin); item = roll_next(item))
		n += name_send_row(x, s, item, &work);
	rows_done(x, s, x->request.tag, n, -1);
}

void serve_RECENT(struct request_context *x, struct session *s)
{
	struct span prefix = request_has(&x->request, FIELD_PREFIX) ? x->request.field[FIELD_PREFIX].text : SPAN("");
	size_t limit = USER_RECENTS, begin = s->unsent, n = 0;
	struct user *u = name_history_user(x, s);
	const struct roll_item *item;
	unsigned work = 0;

	if (!request_limit(x, s, USER_RECENTS, &limit))
		return;
	name_history_look(x->history);
	TAILQ_FOREACH_REVERSE(item, &u->recent.by_age, roll_items, by_age) {
		if (n >= limit || work >= WORK_MOST || rows_are_long(x, s->unsent - begin))
			break;
		if (item_starts(item, prefix))
			n += name_send_row(x, s, item, &work);
	}
	rows_done(x, s, x->request.tag, n, -1);
}
