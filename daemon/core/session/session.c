/* SPDX-License-Identifier: BSD-2-Clause */
/* See session.h. */
#include "daemon/core/session/session.h"

#include "daemon/base/greatest.h"
#include "daemon/base/mem.h"

#include <stdint.h>
#include <string.h>

void users_init(struct users *t, const uint64_t key[2])
{
	map_init(&t->by_name, key);
	TAILQ_INIT(&t->all);
}

static void user_forget(struct users *t, struct user *u)
{
	TAILQ_REMOVE(&t->all, u, in_users);
	map_remove(&t->by_name, &u->by_name);
	roll_release(&u->recent);
	mem_free(u);
}

void users_release(struct users *t)
{
	while (!TAILQ_EMPTY(&t->all))
		user_forget(t, TAILQ_FIRST(&t->all));
	map_release(&t->by_name);
}

MAP_MATCH(user_matches, struct user, by_name, name, n)

struct user *users_find_or_add(struct users *t, struct span name)
{
	uint64_t hash = map_hash(&t->by_name, name.p, name.n);
	struct map_node *node = map_find(&t->by_name, hash, name.p, name.n, user_matches);
	struct user *u;

	if (node)
		return container_of(node, struct user, by_name);
	u = mem_alloc(sizeof(*u) + name.n);
	u->n = name.n;
	memcpy(u->name, name.p, name.n);
	roll_init(&u->recent, t->by_name.key, USER_RECENTS);
	map_insert(&t->by_name, &u->by_name, hash);
	TAILQ_INSERT_TAIL(&t->all, u, in_users);
	return u;
}

void users_trim(struct users *t)
{
	struct user *u, *next;

	for (u = TAILQ_FIRST(&t->all); u && t->by_name.count > USERS_MOST; u = next) {
		next = TAILQ_NEXT(u, in_users);
		if (u->refs == 0)
			user_forget(t, u);
	}
}

#define KEPT   ((size_t)4096)
#define IS_CUT (UINT32_C(1) << 31) /* a flag in the length of a line */

static void lines_ahead_release(struct lines_ahead *a)
{
	if (a->lines)
		buf_release(a->lines);
	mem_free(a->lines);
	*a = (struct lines_ahead){0};
}

/* the bytes that it takes */
static size_t lines_ahead_bytes(const struct lines_ahead *a)
{
	return a->lines ? buf_length(a->lines) : 0;
}

/* True: a bound is reached. */
static bool lines_ahead_add(struct lines_ahead *a, struct input line)
{
	uint32_t head = (uint32_t)line.n | (line.is_cut ? IS_CUT : 0);

	if (!a->lines)
		a->lines = mem_alloc(sizeof(*a->lines));
	buf_append(a->lines, &head, sizeof(head));
	buf_append(a->lines, line.p, line.n);
	return ++a->count >= READ_AHEAD_LINES || buf_length(a->lines) >= READ_AHEAD_BYTES;
}

bool lines_ahead_next(struct lines_ahead *a, struct input *ret_line)
{
	uint32_t head;

	memcpy(&head, buf_begin(a->lines), sizeof(head));
	buf_consume(a->lines, sizeof(head));
	*ret_line = (struct input){.p = buf_begin(a->lines), .n = head & ~IS_CUT, .is_cut = head & IS_CUT};
	buf_consume(a->lines, ret_line->n);
	return --a->count <= READ_AHEAD_LINES / 2 && buf_length(a->lines) <= READ_AHEAD_BYTES / 2;
}

/* The line is the last that lines_ahead_next returned. If none is left, moves that line into the arena, and frees memory that short lines do not need. */
static void lines_ahead_trim(struct lines_ahead *a, struct arena *arena, struct input *line)
{
	if (a->count > 0 || a->lines->cap <= KEPT)
		return;
	line->p = arena_copy(arena, line->p, line->n);
	lines_ahead_release(a);
}

/* The session table, and the effects that concern one session. */

void session_table_init(struct session_table *t, struct core *core)
{
	memset(t, 0, sizeof(*t));
	t->core = core;
	pool_init(&t->pool, sizeof(struct session));
	pool_init(&t->lastings, sizeof(struct lasting));
	TAILQ_INIT(&t->ready);
	TAILQ_INIT(&t->detached);
	TAILQ_INIT(&t->vacant);
	TAILQ_INIT(&t->nested);
	TAILQ_INIT(&t->gainers);
	map_init(&t->known, (const uint64_t[2]){rng_next(&core->rng), rng_next(&core->rng)});
	origins_init(&t->origins, t->known.key);
}

void session_set_nested(struct session_table *t, struct session *s, bool nested)
{
	if (s->nested == nested)
		return;
	s->nested = nested;
	if (nested) {
		TAILQ_INSERT_TAIL(&t->nested, s, in_nested);
		t->nested_count++;
	} else {
		TAILQ_REMOVE(&t->nested, s, in_nested);
		t->nested_count--;
	}
}

void session_set_gains(struct session_table *t, struct session *s, bool gains)
{
	if (gains == (s->in_gainers.tqe_prev != NULL))
		return;
	if (gains) {
		TAILQ_INSERT_TAIL(&t->gainers, s, in_gainers);
	} else {
		TAILQ_REMOVE(&t->gainers, s, in_gainers);
		s->in_gainers.tqe_prev = NULL;
	}
}

/* before: the bytes that the session had stored. */
static void session_count_ahead(struct session_table *t, struct session *s, size_t before)
{
	t->ahead += lines_ahead_bytes(&s->ahead) - before;
	if (s->origin)
		s->origin->ahead += lines_ahead_bytes(&s->ahead) - before;
}

static void session_drop_ahead(struct session_table *t, struct session *s)
{
	size_t before = lines_ahead_bytes(&s->ahead);

	lines_ahead_release(&s->ahead);
	session_count_ahead(t, s, before);
}

static void session_free(struct session_table *t, struct session *s)
{
	session_set_nested(t, s, false);
	session_set_gains(t, s, false);
	session_drop_ahead(t, s);
	pool_put(&t->lastings, s->lasting);
	if (s->identity) {
		mem_free(s->identity->user);
		mem_free(s->identity);
	}
	if (s->in_short.le_prev)
		LIST_REMOVE(s, in_short);
	origin_leave(s->origin);
	mem_free(s->address);
	mem_free(s->label);
	pool_put(&t->pool, s);
}

void session_table_release(struct session_table *t)
{
	struct session *s;

	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i])
			session_free(t, t->slot[i]);
	while ((s = TAILQ_FIRST(&t->detached))) {
		TAILQ_REMOVE(&t->detached, s, lasting->in_detached);
		session_free(t, s);
	}
	origins_release(&t->origins);
	map_release(&t->known);
	mem_free(t->slot);
	pool_release(&t->lastings);
	pool_release(&t->pool);
}

static void session_table_cover(struct session_table *t, uint32_t slot)
{
	uint32_t old = t->slots;

	if (slot < old)
		return;
	t->slots = 2 * slot + 64;
	t->slot = mem_grow(t->slot, t->slots, sizeof(struct session *));
	memset(&t->slot[old], 0, (t->slots - old) * sizeof(struct session *));
}

static struct session *session_new(struct session_table *t)
{
	struct session *s = pool_get(&t->pool);

	s->opened_at = s->active_at = t->core->now;
	s->timer.kind = TIMER_SESSION;
	s->reading = true;
	TAILQ_INIT(&s->claims);
	for (unsigned i = 0; i < BID_KINDS; i++)
		TAILQ_INIT(&s->bids[i]);
	TAILQ_INIT(&s->pendings);
	TAILQ_INIT(&s->listings);
	TAILQ_INIT(&s->places);
	return s;
}

struct lasting *session_lasting(struct session_table *t, struct session *s)
{
	struct lasting *l = s->lasting;

	if (l)
		return l;
	l = s->lasting = pool_get(&t->lastings);
	l->session = s;
	l->grace.kind = TIMER_GRACE;
	return l;
}

struct session *session_open(struct session_table *t, uint64_t id, bool is_web)
{
	uint32_t slot = (uint32_t)id;
	struct session *s = session_new(t);

	session_table_cover(t, slot);
	t->slot[slot] = s;
	t->count++;
	s->id = id;
	s->serial = ++t->serial;
	s->is_web = is_web;
	metric_add(&t->core->metrics, METRIC_SESSIONS, !s->is_web);
	metric_add(&t->core->metrics, METRIC_SESSIONS_OPENED, !s->is_web);
	return s;
}

/* Ends the accounting of the session's connection. */
static void session_disconnect(struct session_table *t, struct session *s)
{
	t->slot[(uint32_t)s->id] = NULL;
	t->count--;
	if (s->ready)
		TAILQ_REMOVE(&t->ready, s, in_ready);
	heap_cancel(&t->core->timers, &s->timer);
	if (s->lasting)
		heap_cancel(&t->core->timers, &s->lasting->grace);
	metric_add(&t->core->metrics, METRIC_SESSIONS, -!s->is_web);
}

static void session_leave_detached(struct session_table *t, struct session *s)
{
	TAILQ_REMOVE(&t->detached, s, lasting->in_detached);
	if (s->lasting->vacant)
		TAILQ_REMOVE(&t->vacant, s, lasting->in_vacant);
	if (s->lasting->vacant && s->origin)
		TAILQ_REMOVE(&s->origin->vacant, s, lasting->in_vacant_of_peer);
	if (s->origin)
		s->origin->detached--;
	t->detached_count--;
	heap_cancel(&t->core->timers, &s->lasting->grace);
	metric_add(&t->core->metrics, METRIC_SESSIONS_DETACHED, -1);
}

void session_close(struct session_table *t, struct session *s)
{
	session_set_known(t, s, false);
	if (s->detached)
		session_leave_detached(t, s);
	else
		session_disconnect(t, s);
	user_leave(s->user);
	session_free(t, s);
}

/* --- sessions with grace --- */

static uint64_t serial_hash(const struct session_table *t, uint64_t serial)
{
	return map_hash(&t->known, &serial, sizeof(serial));
}

static bool serial_matches(const struct map_node *node, const void *key, size_t n)
{
	return memcmp(&container_of(node, struct lasting, by_serial)->session->serial, key, n) == 0;
}

void session_set_known(struct session_table *t, struct session *s, bool known)
{
	if (s->known == known)
		return;
	s->known = known;
	if (known)
		map_insert(&t->known, &s->lasting->by_serial, serial_hash(t, s->serial));
	else
		map_remove(&t->known, &s->lasting->by_serial);
}

struct session *session_of_serial(struct session_table *t, uint64_t serial)
{
	struct map_node *node = map_find(&t->known, serial_hash(t, serial), &serial, sizeof(serial), serial_matches);

	return node ? container_of(node, struct lasting, by_serial)->session : NULL;
}

static void session_join_detached(struct session_table *t, struct session *s)
{
	s->detached = true;
	s->lasting->detached_at = t->core->now;
	TAILQ_INSERT_TAIL(&t->detached, s, lasting->in_detached);
	t->detached_count++;
	if (s->origin)
		s->origin->detached++;
	metric_add(&t->core->metrics, METRIC_SESSIONS_DETACHED, 1);
}

void session_note_vacant(struct session_table *t, struct session *s)
{
	if (!s->detached || s->lasting->vacant || !session_is_empty(s))
		return;
	s->lasting->vacant = true;
	TAILQ_INSERT_TAIL(&t->vacant, s, lasting->in_vacant);
	if (s->origin)
		TAILQ_INSERT_TAIL(&s->origin->vacant, s, lasting->in_vacant_of_peer);
}

struct session *session_restore(struct session_table *t, uint64_t serial)
{
	struct session *s = session_new(t);

	s->serial = serial;
	(void)session_lasting(t, s);
	if (serial > t->serial)
		t->serial = serial;
	session_set_known(t, s, true);
	session_join_detached(t, s);
	return s;
}

void session_detach(struct session_table *t, struct session *s)
{
	session_disconnect(t, s);
	s->id = 0;
	s->busy = s->ready = s->leaving = s->eof = s->over = s->lingered = s->resuming = s->returns = s->awaiting = false;
	s->reading = true;
	s->unsent = 0;
	session_drop_ahead(t, s);
	session_join_detached(t, s);
	session_note_vacant(t, s);
}

/* The short leases of `from` count for `to` from now on. */
static void session_move_renewals(struct session *to, struct session *from)
{
	if (!from->in_short.le_prev)
		return;
	if (!to->in_short.le_prev)
		LIST_INSERT_AFTER(from, to, in_short);
	to->renewals += from->renewals;
	from->renewals = 0;
}

void session_count_claims(struct session *s, struct origin *origin)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		c->origin = origin;
		if (!lock_charge(c->lock, origin))
			claim_crowd(c);
	}
}

/* The claims go on counting for the same origin. If that is unknown, they count for the new one. */
static void session_move_origin(struct session *to, struct session *from)
{
	if (from->origin) {
		origin_refer(from->origin);
		from->origin->ahead += lines_ahead_bytes(&to->ahead);
		if (to->origin)
			to->origin->ahead -= lines_ahead_bytes(&to->ahead);
		origin_leave(to->origin);
		to->origin = from->origin;
		return;
	}
	session_count_claims(from, to->origin);
}

static bool session_table_walk_known(const struct session_table *t, struct map_walk *walk, int64_t most, bool (*each)(struct session *, void *), void *context)
{
	struct map_walk before = *walk;
	struct map_node *node;

	for (; map_walk(&t->known, walk, &node); before = *walk) {
		bool goes_on = --most >= 0;

		for (; goes_on && node; node = node->next)
			goes_on = each(container_of(node, struct lasting, by_serial)->session, context);
		if (!goes_on) {
			*walk = before; /* looks at this chain again */
			return false;
		}
	}
	return true;
}

bool session_table_walk(const struct session_table *t, struct session_walk *w, int64_t most, bool (*each)(struct session *, void *), void *context)
{
	for (; w->slot < t->slots; w->slot++)
		if (--most < 0 || (t->slot[w->slot] && !each(t->slot[w->slot], context)))
			return false;
	if (!session_table_walk_known(t, &w->known, most, each, context))
		return false;
	*w = (struct session_walk){0};
	return true;
}

void session_take_over(struct session_table *t, struct session *to, struct session *from)
{
	struct claim *c;

	session_move_origin(to, from);
	TAILQ_FOREACH(c, &from->claims, in_session)
		lock_pass_claim(c, to);
	TAILQ_CONCAT(&to->claims, &from->claims, in_session);
	to->resumed = true;
	session_set_nested(t, to, from->nested);
	session_set_gains(t, to, from->in_gainers.tqe_prev != NULL);
	to->held = from->held;
	to->waiting = from->waiting;
	to->refused = from->refused;
	to->judged = from->judged;
	session_move_renewals(to, from);
	to->waits_not_notified = from->waits_not_notified;
	if (!(to->hello_fields & UINT32_C(1) << FIELD_NAME)) {
		char *label = to->label;

		to->label = from->label;
		from->label = label;
	}
	if (!(to->hello_fields & UINT32_C(1) << FIELD_HEARTBEAT)) {
		to->heartbeat_us = from->heartbeat_us ? from->heartbeat_us : to->resumed_heartbeat_us;
		session_touch(t, to);
	}
	if (!(to->hello_fields & UINT32_C(1) << FIELD_GRACE))
		to->grace_us = from->grace_us;
	memcpy(session_lasting(t, to)->secret, from->lasting->secret, sizeof(to->lasting->secret));
	to->opened_at = from->opened_at;
	session_set_known(t, to, false);
	to->serial = from->serial;
	session_close(t, from);
	session_set_known(t, to, true);
}

static void session_set_reading(struct session_table *t, struct session *s, bool on)
{
	struct effect *effect;

	if (s->reading == on)
		return;
	s->reading = on;
	effect = effects_add(t->core->out, EFFECT_READ);
	effect->read.session = s->id;
	effect->read.on = on;
}

void session_read_ahead(struct session_table *t, struct session *s, struct input line)
{
	uint64_t most = t->core->conf.limits.output;
	size_t before = lines_ahead_bytes(&s->ahead);
	bool full = lines_ahead_add(&s->ahead, line);

	session_count_ahead(t, s, before);
	if (full || (most > 0 && t->ahead > READ_AHEAD_WHOLE * most))
		session_set_reading(t, s, false);
}

struct session *session_too_far_ahead(const struct session_table *t)
{
	uint64_t most = t->core->conf.limits.output;
	struct greatest furthest = {0};
	struct session *s;

	if (most == 0 || t->ahead <= READ_AHEAD_MOST * most)
		return NULL;
	for (uint32_t i = 0; i < t->slots; i++)
		if ((s = t->slot[i]))
			greatest_see(&furthest, s, lines_ahead_bytes(&s->ahead), s->origin ? s->origin->ahead : 0);
	return furthest.one;
}

bool session_next_line(struct session_table *t, struct session *s, struct input *ret_line)
{
	size_t before;
	bool room;

	if (s->ahead.count == 0)
		return false;
	before = lines_ahead_bytes(&s->ahead);
	room = lines_ahead_next(&s->ahead, ret_line);
	session_count_ahead(t, s, before);
	if (room)
		session_set_reading(t, s, true);
	lines_ahead_trim(&s->ahead, &t->core->out->arena, ret_line);
	return true;
}

void session_await(struct session_table *t, struct session *s)
{
	if (!s->awaiting)
		effects_add(t->core->out, EFFECT_AWAIT)->await.session = s->id;
	s->awaiting = true;
}

bool session_must_await(struct session_table *t, struct session *s)
{
	if (s->unsent <= UNSENT_MAX || s->ahead.count == 0)
		return false;
	session_await(t, s);
	return true;
}

void session_goes_on(struct session_table *t, struct session *s)
{
	if (s->ready)
		return;
	s->ready = true;
	TAILQ_INSERT_TAIL(&t->ready, s, in_ready);
}

void session_answered(struct session_table *t, struct session *s, bool tagged)
{
	if (s->detached) {
		session_note_vacant(t, s);
		return;
	}
	s->busy &= tagged;
	/* A tagged answer does not let a line continue. But it may be the last answer that a leaving session waits for. */
	if (!tagged || s->leaving)
		session_goes_on(t, s);
}

void session_wake(struct session_table *t, struct session *s)
{
	session_note_vacant(t, s);
	if (s->detached || !s->resuming)
		return;
	if (s->open > 0)
		s->open--;
	if (s->open == 0)
		session_goes_on(t, s);
}

struct session *session_next_ready(struct session_table *t)
{
	struct session *s = TAILQ_FIRST(&t->ready);

	if (s) {
		TAILQ_REMOVE(&t->ready, s, in_ready);
		s->ready = false;
	}
	return s;
}

void session_set_label(struct session *s, struct span label)
{
	mem_free(s->label);
	s->label = label.n > 0 ? mem_copy(label.p, label.n) : NULL;
}

struct claim *session_waiting(const struct session *s, struct span tag)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_WAITING && span_equal(span_of(c->asking->tag), tag))
			return c;
	}
	return NULL;
}

static inline void line_add(struct session_table *t, struct session *s, const char *line, size_t n)
{
	struct effect *effect;

	s->unsent += n;
	arena_commit(&t->core->out->arena, n);
	effect = effects_add(t->core->out, EFFECT_SEND);
	effect->send.session = s->id;
	effect->send.bytes = (struct span){line, n};
}

void session_send_raw(struct session_table *t, struct session *s, const char *line, size_t n)
{
	line_add(t, s, line, n);
}

static inline void count_answer(struct core *c, const struct session *s, enum result result)
{
	c->metrics.answered[c->answers][result] += !s->is_web;
	c->answers = c->serving;
}

/* Counts an answer by its word, which follows the tag. Rows and pushes are no answers. */
static void __attribute__((noinline)) count_other(struct core *c, const struct session *s, const char *line)
{
	const char *word = line[0] == '@' ? strchr(line, ' ') + 1 : line;

	if (*word == 'O')
		count_answer(c, s, RESULT_OK);
	else if (*word != '*' && *word != '!')
		count_answer(c, s, *word == 'B' ? RESULT_BUSY : *word == 'T' ? RESULT_TIMEOUT : RESULT_ERROR);
}

void session_send(struct session_table *t, struct session *s, const char *line, size_t n)
{
	if (line[0] == 'O')
		count_answer(t->core, s, RESULT_OK);
	else
		count_other(t->core, s, line);
	line_add(t, s, line, n);
}

void session_hang_up(struct session_table *t, struct session *s, const char *reason)
{
	struct effect *effect = effects_add(t->core->out, EFFECT_HANGUP);

	effect->hangup.session = s->id;
	effect->hangup.reason = span_of(reason);
}
