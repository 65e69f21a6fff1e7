/* SPDX-License-Identifier: BSD-2-Clause */
/* See deadlock.h. The unit is an owner: a session, detached or not, and an owner text. */
#include "daemon/core/deadlock/deadlock.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/deadlock/wait_graph.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/semaphore.h"

#include <string.h>

#define LOOKS_A_PASS   4096 /* cost of a pass, in claims and permits that it looks at, before other work has its turn … */
#define LOOKS_SESSION  64   /* … the least cost of a session … */
#define LOOKS_ROW      8    /* … and the cost of a row */
#define PASSES_APART   MSEC
#define ROWS_SESSION   8192 /* bytes of rows: the most that a session writes */
#define OWNERS_SESSION 1024 /* a power of two. A session with many more owners writes rows of some of them */

/* What an owner waits for, or holds. */
struct stake {
	char kind; /* of its row */
	struct span owner, name;
	unsigned count;
	int64_t place;       /* of a request */
	struct claim *claim; /* one of the two … */
	struct bid *bid;     /* … a request; NULL for a permit that it has, too */
};

/* The request has several names; NULL: it has not. */
static struct group *stake_group(const struct stake *k)
{
	return k->bid && k->bid->kind == BID_GROUP ? group_of_bid(k->bid) : NULL;
}

struct deadlocks {
	struct request_context *x;
	struct timer timer;
	struct name name; /* of the calls, which are about no lock */
	char nothing[1];  /* the text of that name */
	struct calls calls;
	struct buf rows;      /* of this daemon, from the last look at its sessions */
	struct instant begun; /* when that look began … */
	unsigned left;        /* … and how many sessions it has yet to look at */
	unsigned looks;       /* the cost of this pass so far */
	unsigned daemons;     /* how many shared the table last time */
	bool there;           /* rows of this daemon may be at the store */
	/* The session that is being looked at: */
	struct session *session;
	struct instant since;           /* younger requests and holds do not count */
	uint64_t owner[OWNERS_SESSION]; /* 0: free; else the hash of a waiting owner, whose lowest bit says whether it holds something */
	bool nests;                     /* one of them both waits and holds */
	bool wanted;                    /* hold_put: names for which others are known to wait come first */
	size_t most;                    /* the limit of the bytes of rows at its end */
	struct buf names;               /* of the next row; or a circle */
	const struct victim *victim;    /* the owner to be refused … */
	struct stake found;             /* … and its request */
};

typedef void stake_see(struct deadlocks *d, const struct stake *k);

void deadlock_free(struct request_context *x)
{
	struct deadlocks *d = x->deadlocks;

	if (!d)
		return;
	heap_cancel(&x->core->timers, &d->timer);
	calls_close(&x->engine->calls, &d->calls);
	buf_release(&d->rows);
	buf_release(&d->names);
	mem_free(d);
	x->deadlocks = NULL;
}

static struct deadlocks *deadlocks_new(struct request_context *x)
{
	struct deadlocks *d = mem_alloc(sizeof(*d));

	d->x = x;
	d->timer.kind = TIMER_WAITS;
	d->name.text = d->nothing;
	d->daemons = 1;
	calls_open(&x->engine->calls, &d->calls, CALLS_OF_TABLE, &d->name);
	return d;
}

static bool session_nests(const struct session *s)
{
	return s->waiting > 0 && !s->over && (s->held > 0 || !TAILQ_EMPTY(&s->bids[BID_PERMIT]) || !TAILQ_EMPTY(&s->bids[BID_GROUP]));
}

void deadlock_note(struct request_context *x, struct session *s)
{
	if (!session_nests(s))
		return;
	session_set_nested(x->sessions, s, true);
	if (!x->deadlocks)
		x->deadlocks = deadlocks_new(x);
	if (!timer_is_set(&x->deadlocks->timer))
		heap_set(&x->core->timers, &x->deadlocks->timer, instant_add(x->core->now, WAITED_US));
}

/* --- what the owners of a session wait for, and hold ------------------------------------------------------------------ */

static bool is_old(const struct deadlocks *d, struct instant since)
{
	return !instant_before(d->since, since);
}

/*
 * The place is the same at each look. A daemon compares its rows with older ones of the others, and its clock drifts against that of the stores. If places
 * drifted too, each of two daemons could find that the request at the other one came last.
 */
static int64_t wait_place(const struct deadlocks *d, int64_t *stores_us, struct instant asked_at, unsigned priority)
{
	if (*stores_us == 0)
		*stores_us = members_clock_us(&d->x->engine->members, asked_at);
	return *stores_us - priority * PRIORITY_US;
}

static void claim_waits(struct deadlocks *d, struct claim *c, stake_see *see)
{
	struct asking *a = c->asking;

	if (c->state == CLAIM_WAITING && c->patient && !c->ending && !c->leaving && is_old(d, a->asked_at))
		see(d, &(struct stake){'w', claim_owner(c), lock_name(c->lock), 1, wait_place(d, &a->stores_us, a->asked_at, c->priority), .claim = c});
}

static void bid_waits(struct deadlocks *d, struct bid *b, stake_see *see)
{
	const struct permit *p = b->kind == BID_PERMIT ? permit_of_bid(b) : NULL;
	struct stake k = {'w', b->owner, SPAN(""), 1, .bid = b};

	if (b->kind == BID_TAKE || !b->patient || b->answered || b->withdrawn || b->leaving || (p && p->state == PERMIT_TRYING) || !is_old(d, b->asked_at))
		return;
	if (p)
		k = (struct stake){'p', b->owner, p->semaphore->name, p->semaphore->limit, .bid = b};
	k.place = wait_place(d, &b->stores_us, b->asked_at, b->priority);
	see(d, &k);
}

static void waits_see(struct deadlocks *d, stake_see *see)
{
	struct claim *c;

	TAILQ_FOREACH(c, &d->session->claims, in_session)
		claim_waits(d, c, see);
	for (struct bid *b = bid_first(d->session); b; b = bid_next(b))
		bid_waits(d, b, see);
}

static void claims_see(struct deadlocks *d, struct session *s, stake_see *see)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		d->looks++;
		if (c->state == CLAIM_HELD && !c->ending && is_old(d, c->granted_at))
			see(d, &(struct stake){'h', claim_owner(c), lock_name(c->lock), 1, .claim = c});
	}
}

/* The owner of a waiting LOCKALL holds what the LOCKALL has got so far. */
static void holds_see(struct deadlocks *d, stake_see *see)
{
	struct group *g;
	struct permit *p;

	claims_see(d, d->session, see);
	GROUPS_FOREACH(g, d->session)
		claims_see(d, &g->agent, see);
	PERMITS_FOREACH(p, d->session) {
		d->looks++;
		if (p->state == PERMIT_HELD && !p->mark.claim->ending && is_old(d, p->granted_at))
			see(d, &(struct stake){'s', p->bid.owner, p->semaphore->name, 1, .claim = NULL});
	}
}

/* --- which of them wait while they hold something --------------------------------------------------------------------- */

static uint64_t owner_hash(const struct deadlocks *d, struct span owner)
{
	return siphash(d->x->sessions->known.key, owner.p ? owner.p : "", owner.n) >> 6 | 1; /* at most 18 digits */
}

/* Its entry, or a free one; NULL: there is no room. */
static uint64_t *owner_find(struct deadlocks *d, struct span owner)
{
	uint64_t hash = owner_hash(d, owner);

	for (unsigned i = 0; i < 16; i++) {
		uint64_t *at = &d->owner[(hash / 2 + i) % OWNERS_SESSION];

		if (*at == 0 || *at >> 1 == hash)
			return at;
	}
	return NULL;
}

static bool owner_nests(struct deadlocks *d, struct span owner)
{
	const uint64_t *at = owner_find(d, owner);

	return at && *at & 1;
}

static void wait_note(struct deadlocks *d, const struct stake *k)
{
	uint64_t *at = owner_find(d, k->owner);

	if (at && *at == 0)
		*at = owner_hash(d, k->owner) << 1;
}

static void hold_note(struct deadlocks *d, const struct stake *k)
{
	uint64_t *at = owner_find(d, k->owner);

	if (!at || *at == 0)
		return;
	*at |= 1;
	d->nests = true;
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

/* Writes a row with the names in `names`, and empties that. */
static void stake_put(struct deadlocks *d, const struct stake *k)
{
	const struct wait_row row = {k->kind, (int64_t)d->session->serial, (int64_t)owner_hash(d, k->owner), k->place, k->count,
	                             {buf_begin(&d->names), buf_length(&d->names)}};

	d->looks += LOOKS_ROW;
	if (buf_length(&d->rows) + row.names.n + ROW_HEAD_MAX <= d->most)
		row_put(&d->rows, &row);
	buf_clear(&d->names);
}

/* A LOCKALL waits for one name at a time; a LOCKANY for any of them. */
static void group_put(struct deadlocks *d, const struct stake *k, const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (g->part[i].claim && g->part[i].claim->state == CLAIM_WAITING)
			netstring_put(&d->names, g->part[i].name);
	if (buf_length(&d->names) > 0)
		stake_put(d, k);
}

static void wait_put(struct deadlocks *d, const struct stake *k)
{
	if (!owner_nests(d, k->owner))
		return;
	if (stake_group(k)) {
		group_put(d, k, stake_group(k));
		return;
	}
	netstring_put(&d->names, k->name);
	stake_put(d, k);
}

static void hold_put(struct deadlocks *d, const struct stake *k)
{
	const struct contender *c = k->claim ? k->claim->lock->contender : NULL;
	bool wanted = !c || c->want_since.us != 0 || !TAILQ_EMPTY(&c->waiters);

	if (wanted != d->wanted || !owner_nests(d, k->owner))
		return;
	netstring_put(&d->names, k->name);
	stake_put(d, k);
}

/* --- a look at the sessions of this daemon ---------------------------------------------------------------------------- */

/* The limit that leaves room at the store for the rows of all daemons. */
static size_t rows_most(const struct deadlocks *d)
{
	return ROWS_MAX / d->daemons;
}

static void session_look(struct deadlocks *d, struct session *s)
{
	d->looks += LOOKS_SESSION;
	if (!session_nests(s)) {
		session_set_nested(d->x->sessions, s, false);
		return;
	}
	d->session = s;
	d->since = instant_add(d->begun, -WAITED_US);
	d->nests = false;
	d->most = buf_length(&d->rows) + ROWS_SESSION;
	if (d->most > rows_most(d))
		d->most = rows_most(d);
	memset(d->owner, 0, sizeof(d->owner));
	waits_see(d, wait_note);
	holds_see(d, hold_note);
	if (!d->nests)
		return;
	waits_see(d, wait_put);
	d->wanted = true;
	holds_see(d, hold_put);
	d->wanted = false;
	holds_see(d, hold_put);
}

/*
 * Each session that was looked at goes to the end of the list. So if there is no room for all, the others are the first next time. False: the rest is left to
 * another pass.
 */
static bool sessions_look(struct deadlocks *d)
{
	struct sessions *nested = &d->x->sessions->nested;
	struct session *s;

	for (d->looks = 0; d->left > 0 && d->looks < LOOKS_A_PASS && (s = TAILQ_FIRST(nested)); d->left--) {
		TAILQ_REMOVE(nested, s, in_nested);
		TAILQ_INSERT_TAIL(nested, s, in_nested);
		session_look(d, s);
		if (buf_length(&d->rows) + ROW_HEAD_MAX > rows_most(d))
			d->left = 1;
	}
	return d->left == 0 || TAILQ_EMPTY(nested);
}

/* --- the store -------------------------------------------------------------------------------------------------------- */

/*
 * All daemons choose the same store among those that they can use, whatever its name: the one with the smallest marker. False: there is none, or it has not
 * answered the last call yet.
 */
static bool store_find(const struct request_context *x, unsigned *ret_node)
{
	const struct member *m = x->engine->members.node;
	unsigned found = NODES_MAX;

	for (unsigned i = 0; i < x->core->conf.nodes; i++)
		if (member_usable(&m[i]) && (found == NODES_MAX || strcmp(m[i].marker, m[found].marker) < 0))
			found = i;
	*ret_node = found;
	return found < NODES_MAX && !nodeset_has(x->deadlocks->calls.open, found);
}

/* When there are no more rows, the old ones are removed. If that fails they expire soon. */
static void exchange(struct request_context *x)
{
	struct deadlocks *d = x->deadlocks;
	struct span id = span_of(x->core->daemon_id);
	size_t n = buf_length(&d->rows);
	struct call *call;
	unsigned node;

	if ((n == 0 && !d->there) || !store_find(x, &node))
		return;
	d->there = n > 0;
	call = calls_send(&x->engine->calls, &d->calls, node, CALL_TABLE);
	call->value = (struct span){arena_copy(&x->core->out->arena, buf_begin(&d->rows), n), n};
	call->ticket = (struct span){arena_copy(&x->core->out->arena, id.p, id.n), id.n};
	call->ticket_ms = ROWS_LIFE_US / MSEC;
}

void deadlock_fired(struct request_context *x)
{
	struct deadlocks *d = x->deadlocks;

	calls_stall(&x->engine->calls, &d->calls);
	if (d->left == 0) {
		buf_clear(&d->rows);
		d->begun = x->core->now;
		d->left = x->sessions->nested_count;
	}
	if (!sessions_look(d)) {
		heap_set(&x->core->timers, &d->timer, instant_add(x->core->now, PASSES_APART));
		return;
	}
	d->left = 0;
	exchange(x);
	if (!TAILQ_EMPTY(&x->sessions->nested))
		heap_set(&x->core->timers, &d->timer, instant_add(d->begun, ROWS_EVERY_US));
	else if (!nodeset_any(d->calls.open))
		deadlock_free(x);
}

/* --- a refusal -------------------------------------------------------------------------------------------------------- */

static bool stake_is_for(const struct stake *k, const struct victim *v)
{
	const struct group *g = stake_group(k);

	if (!g)
		return (k->kind == 'p') == v->permits && span_equal(k->name, v->name);
	for (unsigned i = 0; i < g->parts && !v->permits; i++)
		if (span_equal(g->part[i].name, v->name))
			return true;
	return false;
}

static void wait_find(struct deadlocks *d, const struct stake *k)
{
	if ((int64_t)owner_hash(d, k->owner) == d->victim->owner && stake_is_for(k, d->victim))
		d->found = *k;
}

static bool victim_knows(const void *deadlocks, struct span name)
{
	const struct deadlocks *d = deadlocks;

	return session_knows(d->x->core, d->session, name);
}

static void found_report(struct deadlocks *d)
{
	const struct claim *c = d->found.claim;
	const struct bid *b = d->found.bid;

	if (c ? c->not_notified : b->not_notified)
		return;
	wait_graph_write(d->victim, victim_knows, d, &d->names, CIRCLE_MAX);
	core_answers(d->x->core, c ? VERB_LOCK : b->kind == BID_PERMIT ? VERB_ACQUIRE : group_verb(stake_group(&d->found)));
	send_deadlock(d->x, d->session, span_of(c ? c->asking->tag : b->tag), (struct span){buf_begin(&d->names), buf_length(&d->names)});
	buf_clear(&d->names);
}

/* The answer was sent to its client. */
static void found_withdraw(struct deadlocks *d)
{
	struct claim *c = d->found.claim;
	struct lock *l = c ? c->lock : NULL;

	if (c) {
		wait_withdraw(d->x->engine, c, REFUSED_AND_SENT);
		convert_look(d->x->engine, l);
	} else {
		d->found.bid->reason_sent = true;
		bid_withdraw(d->x, d->found.bid);
	}
}

static void victim_refuse(struct deadlocks *d, struct session *s, const struct victim *v)
{
	d->session = s;
	d->since = instant_add(d->x->core->now, -WAITED_US);
	d->victim = v;
	d->found = (struct stake){0};
	waits_see(d, wait_find);
	if (d->found.kind) {
		found_report(d);
		found_withdraw(d);
	}
	d->victim = NULL;
}

static void victims_refuse(struct deadlocks *d, const struct victim *victim, unsigned victims)
{
	struct session *s, *next;

	for (s = victims > 0 ? TAILQ_FIRST(&d->x->sessions->nested) : NULL; s; s = next) {
		next = TAILQ_NEXT(s, in_nested);
		for (unsigned i = 0; i < victims; i++)
			if (victim[i].session == (int64_t)s->serial)
				victim_refuse(d, s, &victim[i]);
	}
}

void deadlock_answered(struct request_context *x, const struct answer *a)
{
	struct deadlocks *d = x->deadlocks;
	struct victim victim[VICTIMS_MOST];
	struct wait_graph *g;

	if (a->call != d->calls.slot)
		return;
	if (a->class == ANSWER_EXECUTED && a->code == 'T') {
		g = wait_graph_new(a->found, x->sessions->known.key, &d->daemons);
		victims_refuse(d, victim, wait_graph_find(g, span_of(x->core->daemon_id), victim));
		wait_graph_free(g);
	}
	if (!timer_is_set(&d->timer) && !nodeset_any(d->calls.open))
		deadlock_free(x);
}
