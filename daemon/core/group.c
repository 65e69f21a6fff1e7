/* SPDX-License-Identifier: BSD-2-Clause */
/* See group.h. */
#include "daemon/core/group.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine.h"
#include "daemon/core/hold.h"
#include "daemon/core/terms.h"
#include "daemon/core/wait.h"

#include <stdlib.h>

#define INSIST_FIRST_US (250 * MSEC)
#define INSIST_PART     4 /* between two times of insisting it is polite for so many times as long */

static char *text_copy(struct span text)
{
	return text.n > 0 ? mem_copy(text.p, text.n) : NULL;
}

static void group_set_terms(struct commander *x, struct group *g)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;

	g->any = q->verb == VERB_LOCKANY;
	g->renew = !request_has(q, FIELD_RENEW) || q->field[FIELD_RENEW].number;
	g->ttl_us = request_has(q, FIELD_TTL) ? q->field[FIELD_TTL].number : x->core->conf.lease_us;
	g->delay_us = request_has(q, FIELD_DELAY) ? q->field[FIELD_DELAY].number : 0;
	g->shared = request_is_shared(q);
	g->priority = request_priority(q);
	g->patient = wait > 0;
	g->asked_at = x->core->now;
	g->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->now, wait);
	g->insist_us = INSIST_FIRST_US;
	g->insist_at = instant_add(x->core->now, INSIST_PART * g->insist_us);
}

/* Without terms, and not due. */
static struct group *group_begin(struct session *s, const struct span *name, unsigned names, struct span owner, struct span note)
{
	struct group *g = mem_alloc(sizeof(*g));

	g->session = s;
	g->agent.principal = s;
	g->agent.over = g->agent.detached = true;
	TAILQ_INIT(&g->agent.claims);
	TAILQ_INIT(&g->agent.pendings);
	TAILQ_INIT(&g->agent.listings);
	g->agent.serial = s->serial;
	g->insisting.kind = TIMER_INSISTING;
	g->lapse.kind = TIMER_LAPSE;
	g->owner = text_copy(owner);
	g->owner_n = owner.n;
	g->note = text_copy(note);
	g->note_n = note.n;
	g->parts = names;
	g->part = mem_alloc(g->parts * sizeof(*g->part));
	for (unsigned i = 0; i < g->parts; i++) {
		g->part[i].name = text_copy(name[i]);
		g->part[i].n = name[i].n;
	}
	LIST_INSERT_HEAD(&s->groups, g, in_session);
	s->waiting += g->parts;
	return g;
}

struct group *group_new(struct commander *x, struct session *s)
{
	const struct request *q = &x->request;
	struct group *g = group_begin(s, q->word, q->words, request_owner(q), request_note(q));

	memcpy(g->tag, q->tag.p, q->tag.n);
	group_set_terms(x, g);
	group_make_due(x, g);
	return g;
}

struct group *group_new_of_take(struct commander *x, struct session *s, struct take *take, struct span name, struct span owner, int64_t ttl_us)
{
	struct group *g = group_begin(s, &name, 1, owner, SPAN(""));

	g->take = take;
	g->renew = true;
	g->ttl_us = ttl_us;
	g->asked_at = g->wait_until = x->core->now;
	group_make_due(x, g);
	return g;
}

void group_make_due(struct commander *x, struct group *g)
{
	if (g->due)
		return;
	g->due = true;
	x->due++;
	TAILQ_INSERT_TAIL(&x->groups_due, g, in_due);
}

void groups_make_due(struct commander *x, struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		group_make_due(x, g);
}

void group_cancel(struct commander *x, struct group *g)
{
	heap_cancel(&x->core->timers, &g->insisting);
	g->state = GROUP_CANCELLED;
	group_make_due(x, g);
}

/* The rows come in the order of the present request. */
static void group_reorder(struct group *g, const struct request *q)
{
	for (unsigned i = 0; i < g->parts; i++) {
		unsigned k = i;
		struct part p;

		while (!span_equal(part_name(&g->part[k]), q->word[i]))
			k++;
		p = g->part[k];
		g->part[k] = g->part[i];
		g->part[i] = p;
	}
	for (unsigned i = 0; i < g->parts && g->state == GROUP_WAITING; i++)
		if (g->part[i].claim)
			g->next = i;
}

void group_repeat(struct commander *x, struct group *g)
{
	const struct request *q = &x->request;
	int64_t wait = q->field[FIELD_WAIT].number;

	g->not_notified = false;
	heap_cancel(&x->core->timers, &g->lapse);
	if (!g->any)
		group_reorder(g, q);
	memcpy(g->tag, q->tag.p, q->tag.n);
	g->tag[q->tag.n] = '\0';
	g->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->now, wait);
	for (unsigned i = 0; i < g->parts; i++)
		if (g->part[i].claim && g->part[i].claim->state == CLAIM_WAITING && g->part[i].claim->patient)
			wait_set_end(x->engine, g->part[i].claim, g->wait_until);
	group_make_due(x, g);
}

/* --- parts --- */

struct claim *group_own(const struct commander *x, const struct group *g, const struct part *p)
{
	struct lock *l = lock_find(&x->engine->table, part_name(p));

	return l ? lock_holder_of(l, g->session, group_owner(g)) : NULL;
}

static void part_forget_refusal(struct commander *x, struct part *p)
{
	if (!p->seen)
		return;
	p->seen->name.refs--;
	lock_drop_if_unused(&x->engine->table, p->seen);
	p->seen = NULL;
}

void part_ask(struct commander *x, struct group *g, struct part *p, bool patient)
{
	struct lock_table *t = &x->engine->table;
	struct claim *c = claim_new(t);

	p->claim = c;
	p->why = NOT_REFUSED;
	part_forget_refusal(x, p);
	c->session = &g->agent;
	claim_set_texts(c, group_owner(g), (struct span){g->note, g->note_n});
	claim_begin_asking(t, c);
	c->asking->asked_at = x->core->now;
	c->renew = g->renew;
	c->ttl_us = g->ttl_us;
	c->delay_us = g->delay_us;
	c->shared = g->shared;
	c->priority = g->priority & 15;
	c->patient = patient;
	TAILQ_INSERT_TAIL(&g->agent.claims, c, in_session);
	engine_lock(x->engine, c, part_name(p), patient ? g->wait_until : x->core->now);
}

void part_drop(struct commander *x, struct group *g, struct part *p)
{
	struct claim *c = p->claim;

	if (!c)
		return;
	p->claim = NULL;
	TAILQ_REMOVE(&g->agent.claims, c, in_session);
	if (c->state == CLAIM_HELD)
		hold_unlock(x->engine, c, 0, NULL);
	else if (c->state == CLAIM_LOST)
		hold_acknowledge(x->engine, c);
	else
		hold_abandon(x->engine, c, INSTANT_PAST);
}

/* Those that wait first: what is given back must not be granted to a group that is about to leave. */
static void group_drop_part_of(struct commander *x, struct group *g, bool waiting, const struct part *but)
{
	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (p != but && p->claim && (p->claim->state == CLAIM_WAITING) == waiting)
			part_drop(x, g, p);
	}
}

void group_drop_parts(struct commander *x, struct group *g, const struct part *but)
{
	group_drop_part_of(x, g, true, but);
	group_drop_part_of(x, g, false, but);
}

static struct part *part_of(struct group *g, const struct claim *c)
{
	struct part *p = g->part;

	while (p->claim != c)
		p++;
	return p;
}

bool group_note(struct commander *x, const struct notice *n)
{
	struct group *g = group_of(n->claim);
	struct part *p;

	switch (n->kind) {
	case NOTICE_GRANTED:
		claim_end_asking(&x->engine->table, n->claim);
		break;
	case NOTICE_REFUSED:
		p = part_of(g, n->claim);
		p->claim = NULL;
		p->why = n->refusal;
		p->seen = n->claim->lock;
		p->seen->name.refs++;
		TAILQ_REMOVE(&g->agent.claims, n->claim, in_session);
		break;
	case NOTICE_LOST:
		break; /* the claim says so itself */
	case NOTICE_WAITING:
	case NOTICE_WANTED:
		return false;
	default:
		return true;
	}
	group_make_due(x, g);
	return true;
}

/* --- the end --- */

static void group_release(struct commander *x, struct group *g)
{
	heap_cancel(&x->core->timers, &g->insisting);
	heap_cancel(&x->core->timers, &g->lapse);
	LIST_REMOVE(g, in_session);
	for (unsigned i = 0; i < g->parts; i++)
		free(g->part[i].name);
	free(g->part);
	free(g->owner);
	free(g->note);
	free(g);
}

void group_free(struct commander *x, struct group *g)
{
	group_drop_parts(x, g, NULL);
	if (g->due) {
		TAILQ_REMOVE(&x->groups_due, g, in_due);
		x->due--;
	}
	g->session->waiting -= g->parts;
	for (unsigned i = 0; i < g->parts; i++)
		part_forget_refusal(x, &g->part[i]);
	group_release(x, g);
}

static void groups_release(struct commander *x, struct session *s)
{
	while (s && !LIST_EMPTY(&s->groups))
		group_release(x, LIST_FIRST(&s->groups));
}

void groups_free_all(struct commander *x)
{
	struct session *s;

	for (uint32_t i = 0; i < x->sessions->slots; i++)
		groups_release(x, x->sessions->slot[i]);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		groups_release(x, s);
}

void group_is_ending(struct group *g)
{
	struct claim *c;

	g->ending = true;
	TAILQ_FOREACH(c, &g->agent.claims, in_session)
		c->ending = true;
}

void groups_are_ending(struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		group_is_ending(g);
}

void groups_end(struct commander *x, struct session *s, bool waiting)
{
	struct group *g, *next;

	for (g = LIST_FIRST(&s->groups); g; g = next) {
		next = LIST_NEXT(g, in_session);
		if (!g->ending)
			continue;
		if (waiting)
			group_drop_part_of(x, g, true, NULL);
		else
			group_free(x, g);
	}
}

/* --- the connection --- */

void groups_detach(struct commander *x, struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session) {
		g->tag[0] = '\0';
		g->not_notified = true;
		g->leaving = false;
		heap_cancel(&x->core->timers, &g->lapse);
	}
}

void groups_take_over(struct session *to, struct session *from)
{
	struct group *g;

	while ((g = LIST_FIRST(&from->groups))) {
		LIST_REMOVE(g, in_session);
		LIST_INSERT_HEAD(&to->groups, g, in_session);
		g->session = g->agent.principal = to;
		g->agent.serial = from->serial;
	}
}

void groups_bound(struct commander *x, struct session *s, struct instant until)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (g->not_notified)
			heap_set(&x->core->timers, &g->lapse, until);
}

struct group *group_waiting(const struct session *s, struct span tag)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (span_equal(span_of(g->tag), tag))
			return g;
	return NULL;
}

static bool group_has_name(const struct group *g, struct span name)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (span_equal(part_name(&g->part[i]), name))
			return true;
	return false;
}

struct group *group_in_other_mode(const struct session *s, struct span name, struct span owner, bool shared)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (!g->ending && g->shared != shared && span_equal(group_owner(g), owner) && group_has_name(g, name))
			return g;
	return NULL;
}

bool groups_wait(const struct session *s, bool patient)
{
	const struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (!g->not_notified && g->patient == patient)
			return true;
	return false;
}

unsigned groups_patient(const struct session *s)
{
	const struct group *g;
	unsigned n = 0;

	LIST_FOREACH(g, &s->groups, in_session)
		n += g->patient;
	return n;
}
