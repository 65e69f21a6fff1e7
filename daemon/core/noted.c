/* SPDX-License-Identifier: BSD-2-Clause */
/* See noted.h. */
#include "daemon/core/noted.h"

#include "daemon/base/mem.h"

#include <stdio.h>

struct noted *noted_here(struct commander *x)
{
	struct core *core = x->core;
	uint64_t key[2];

	if (x->noted)
		return x->noted;
	key[0] = rng_next(&core->rng);
	key[1] = rng_next(&core->rng);
	x->noted = mem_alloc(sizeof(*x->noted));
	x->noted->timer.kind = TIMER_NOTES;
	x->noted->name.text = x->noted->nothing;
	users_init(&x->noted->users, key);
	roll_init(&x->noted->known, key, core->conf.shared ? NAMES_HERE : NAMES_STORED);
	calls_open(&x->engine->calls, &x->noted->calls, CALLS_OF_NOTES, &x->noted->name);
	return x->noted;
}

void noted_close(struct commander *x)
{
	if (!x->noted)
		return;
	heap_cancel(&x->core->timers, &x->noted->timer);
	calls_close(&x->engine->calls, &x->noted->calls);
}

void noted_free(struct commander *x)
{
	if (!x->noted)
		return;
	buf_release(&x->noted->notes);
	roll_release(&x->noted->known);
	users_release(&x->noted->users);
	mem_free(x->noted);
	x->noted = NULL;
}

/*
 * "user NAME" of AUTH; without that "UID@HOST" on a Unix socket; else the address without its port, or nothing, of which there is one user, too. Only the
 * first has a blank.
 */
static struct span user_name(const struct commander *x, const struct session *s, char out[USER_MAX])
{
	struct span address = session_address(s);
	size_t n = address.n;
	int length = 0;

	if (s->identity && s->identity->user)
		length = snprintf(out, USER_MAX, "user %s", s->identity->user);
	else if (s->is_unix)
		length = snprintf(out, USER_MAX, "%lld@%s", (long long)s->uid, x->core->conf.host);
	if (length > 0)
		return (struct span){out, length < USER_MAX ? (size_t)length : USER_MAX - 1};
	while (n > 0 && address.p[n - 1] != ':')
		n--;
	n = n > 0 ? n - 1 : address.n;
	return n > 0 ? (struct span){address.p, n < USER_MAX ? n : USER_MAX} : SPAN("?");
}

struct user *noted_user(struct commander *x, struct session *s)
{
	char name[USER_MAX];

	if (!s->user) {
		s->user = users_find_or_add(&noted_here(x)->users, user_name(x, s, name));
		s->user->refs++;
	}
	return s->user;
}

static void noted_begin(struct commander *x)
{
	if (!timer_is_set(&x->noted->timer))
		heap_set(&x->core->timers, &x->noted->timer, instant_add(x->core->now, NOTES_EVERY_US));
}

void noted_grant(struct commander *x, struct session *s, struct span name)
{
	struct note note = {s->user, name.n};
	char *at;

	if (!x->core->conf.names)
		return;
	if (!note.user)
		note.user = noted_user(x, s);
	if (note.user->notes == NOTES_OF_USER || x->noted->count == NOTES_MOST)
		return;
	if (x->noted->count++ == 0)
		noted_begin(x);
	note.user->notes++;
	at = buf_reserve(&x->noted->notes, sizeof(note) + name.n);
	memcpy(at, &note, sizeof(note));
	memcpy(at + sizeof(note), name.p, name.n);
	buf_commit(&x->noted->notes, sizeof(note) + name.n);
}

/* --- notes become names ---------------------------------------------------------------------------------------------- */

/* Is due again where it was due before: the stores are told the newest last. */
static void note_recent(struct commander *x, struct user *u, struct roll_item *item)
{
	if (!x->core->conf.shared)
		return;
	roll_set_due(&u->recent, item, false);
	roll_set_due(&u->recent, item, true);
	user_set_due(&x->noted->users, u, true);
}

static void note_known(struct commander *x, struct span name)
{
	struct roll *known = &x->noted->known;
	struct roll_item *item = roll_note(known, name.p, name.n, NULL);

	if (x->core->conf.shared && item->stamp <= x->core->now.us)
		roll_set_due(known, item, true);
}

/* A name of a user that was noted here less than an hour ago is known already. */
static void note_look(struct commander *x, struct user *u, struct span name)
{
	struct roll_item *item = roll_note(&u->recent, name.p, name.n, NULL);

	u->notes = 0;
	note_recent(x, u, item);
	if (item->stamp > x->core->now.us)
		return;
	item->stamp = x->core->now.us + NOTES_AGAIN_US;
	note_known(x, name);
}

void noted_look(struct commander *x)
{
	struct noted *w = x->noted;
	struct note note;

	if (w->count == 0)
		return;
	for (const char *at = buf_begin(&w->notes), *end = at + buf_length(&w->notes); at < end; at += sizeof(note) + note.n) {
		memcpy(&note, at, sizeof(note));
		note_look(x, note.user, (struct span){at + sizeof(note), note.n});
	}
	buf_clear(&w->notes);
	w->count = 0;
	users_trim(&w->users);
}

/* --- the stores are told --------------------------------------------------------------------------------------------- */

void noted_put(struct buf *out, char kind, struct span user, struct span name)
{
	char length[24] = "";
	size_t n = kind == 'n' ? 0 : (size_t)snprintf(length, sizeof(length), "%zu:", user.n);

	buf_printf(out, "%zu:%c%s", 1 + n + user.n + name.n, kind, length);
	buf_append(out, user.p, user.n);
	buf_append(out, name.p, name.n);
}

/* Takes the due names of this roll, as many as there is room for. */
static void put_due(struct buf *out, struct roll *r, char kind, struct span user, int64_t stamp, unsigned *room)
{
	struct roll_item *item;

	for (; *room > 0 && buf_length(out) < NOTES_BYTES && (item = TAILQ_FIRST(&r->due)); --*room) {
		noted_put(out, kind, user, (struct span){item->text, item->n});
		roll_set_due(r, item, false);
		if (kind == 'n')
			item->stamp = stamp;
	}
}

static void put_all_due(struct noted *w, struct buf *out)
{
	unsigned names = NOTES_TOLD, recents = NOTES_TOLD;
	struct user *u;

	buf_append(out, "n", 1);
	put_due(out, &w->known, 'n', SPAN(""), w->telling, &names);
	while (recents > 0 && buf_length(out) < NOTES_BYTES && (u = TAILQ_FIRST(&w->users.due))) {
		put_due(out, &u->recent, 'u', (struct span){u->name, u->n}, 0, &recents);
		user_set_due(&w->users, u, !TAILQ_EMPTY(&u->recent.due));
	}
}

static bool is_due(const struct noted *w)
{
	return !TAILQ_EMPTY(&w->known.due) || !TAILQ_EMPTY(&w->users.due);
}

/* A store that owes the answer to an earlier call is left out. */
static bool can_be_told(const struct commander *x, unsigned node)
{
	return member_usable(&x->engine->members.node[node]) && !nodeset_has(x->noted->calls.open, node);
}

static bool some_can_be_told(const struct commander *x)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++)
		if (can_be_told(x, i))
			return true;
	return false;
}

/* Each store that can be told is told the same. */
static void tell(struct commander *x)
{
	struct noted *w = x->noted;
	struct buf out = {0};
	struct span text;

	w->telling = x->core->now.us + NOTES_AGAIN_US;
	w->told = false;
	put_all_due(w, &out);
	text = (struct span){arena_copy(&x->core->out->arena, buf_begin(&out), buf_length(&out)), buf_length(&out)};
	buf_release(&out);
	for (unsigned i = 0; i < x->core->conf.nodes; i++)
		if (can_be_told(x, i))
			noted_ask(x, &w->calls, i, text);
}

void noted_ask(struct commander *x, struct calls *c, unsigned node, struct span asked)
{
	struct call *call = calls_send(&x->engine->calls, c, node, CALL_NAMES);

	call->value = asked;
	call->range = NAMES_STORED;
	call->ticket_ms = NAMES_LIFE_US / MSEC;
	x->asked_names++;
}

/* Where no store can be used, what is due waits for the next grant. */
void noted_fired(struct commander *x)
{
	struct noted *w = x->noted;

	noted_look(x);
	calls_stall(&x->engine->calls, &w->calls);
	if (is_due(w) && some_can_be_told(x))
		tell(x);
	if (is_due(w) && members_usable(&x->engine->members) > 0)
		heap_set(&x->core->timers, &w->timer, instant_add(x->core->now, NOTES_EVERY_US));
}

void noted_answered(struct commander *x, const struct answer *a)
{
	struct noted *w = x->noted;
	struct roll_item *item;

	w->told |= a->class == ANSWER_EXECUTED && a->code == 'T';
	if (w->told || nodeset_any(w->calls.open))
		return;
	/* No store was told: these names come again with the next grant. So a store that refuses them for ever is not asked without end. */
	TAILQ_FOREACH(item, &w->known.by_age, by_age)
		if (item->stamp == w->telling) {
			item->stamp = 0;
			roll_set_due(&w->known, item, true);
		}
}
