/* SPDX-License-Identifier: BSD-2-Clause */
/* See semaphore.h. The names of slots begin with bytes that the stores recognize: daemon/redis/batch.c gives them their own keys. */
#include "daemon/core/session/semaphore.h"

#include "daemon/base/mem.h"

/* --- semaphores --- */

MAP_MATCH(semaphore_matches, struct semaphore, node, name.p, name.n)

void semaphores_init(struct request_context *x)
{
	map_init(&x->semaphores, x->engine->table.map.key);
}

struct semaphore *semaphore_find(struct request_context *x, struct span name)
{
	struct map_node *node;

	if (x->semaphores.count == 0)
		return NULL;
	node = map_find(&x->semaphores, map_hash(&x->semaphores, name.p, name.n), name.p, name.n, semaphore_matches);
	return node ? container_of(node, struct semaphore, node) : NULL;
}

bool semaphore_is_vacant(const struct semaphore *m)
{
	return TAILQ_EMPTY(&m->line) && TAILQ_EMPTY(&m->others);
}

struct semaphore *semaphore_find_or_add(struct request_context *x, struct span name, unsigned limit)
{
	struct semaphore *m = semaphore_find(x, name);
	uint64_t hash;

	if (m && m->limit != limit && semaphore_is_vacant(m)) {
		m->limit = limit;
		m->next %= limit;
	}
	if (m)
		return m;
	hash = map_hash(&x->semaphores, name.p, name.n);
	m = mem_alloc(sizeof(*m));
	m->name = mem_span(name);
	m->limit = limit;
	/* Daemons begin with different slots, so they seldom ask for the same one while there are enough. */
	m->next = (unsigned)(siphash(x->semaphores.key, x->core->daemon_id, strlen(x->core->daemon_id)) ^ hash) % limit;
	TAILQ_INIT(&m->line);
	TAILQ_INIT(&m->others);
	TAILQ_INIT(&m->lost);
	map_insert(&x->semaphores, &m->node, hash);
	return m;
}

static void semaphore_free(struct request_context *x, struct semaphore *m)
{
	map_remove(&x->semaphores, &m->node);
	mem_span_free(&m->name);
	mem_free(m);
}

void semaphore_drop_if_unused(struct request_context *x, struct semaphore *m)
{
	if (semaphore_is_vacant(m) && TAILQ_EMPTY(&m->lost))
		semaphore_free(x, m);
}

void permit_release(struct request_context *x, struct permit *p)
{
	bid_close(x, &p->bid);
	mem_free(p->asked);
	mem_free(p);
}

static void permits_release(struct request_context *x, struct permits *list)
{
	struct permit *p;

	while ((p = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, p, in_line);
		pending_free(&x->engine->table.pendings, p->extend);
		if (permit_is_asking(p))
			bid_answered(&p->bid, 1);
		permit_release(x, p);
	}
}

void semaphores_free_all(struct request_context *x)
{
	struct map_node *node;

	while ((node = map_next(&x->semaphores, NULL))) {
		struct semaphore *m = container_of(node, struct semaphore, node);

		permits_release(x, &m->line);
		permits_release(x, &m->others);
		permits_release(x, &m->lost);
		semaphore_free(x, m);
	}
	map_release(&x->semaphores);
}

bool semaphore_owns(const struct lock *l, struct span *ret_name)
{
	struct span name = lock_name(l);

	if (l->lease.limit == 0)
		return false;
	*ret_name = name;
	if (l->lease.limit != SLOT_OF_SEMAPHORE)
		return true;
	name = (struct span){name.p + sizeof(SLOT_PREFIX) - 1, name.n - (sizeof(SLOT_PREFIX) - 1)};
	while (name.n > 0 && name.p[name.n - 1] != '#')
		name.n--;
	*ret_name = (struct span){name.p, name.n - (name.n > 0)};
	return true;
}

/* --- permits --- */

void permit_leave_for_later(struct request_context *x, struct permit *p)
{
	if (p->bid.due != DUE_NOT)
		return;
	bid_set_due(x, &p->bid, DUE_LATER);
	request_context_again(x);
}

/* Each of them asks for at least one slot, so there is no need to look at more than the step has room for. */
void permits_again(struct request_context *x)
{
	struct bid *b;

	for (unsigned n = 0; n < SLOTS_A_STEP && (b = TAILQ_FIRST(&x->bids_later)); n++)
		bid_set_due(x, b, DUE_NOW);
	if (!TAILQ_EMPTY(&x->bids_later))
		request_context_again(x);
}

static struct instant permit_place(const struct permit *p)
{
	return instant_add(p->bid.asked_at, -(int64_t)p->bid.priority * PRIORITY_US);
}

bool permit_comes_before(const struct permit *p, const struct permit *q)
{
	return instant_diff(permit_place(p), permit_place(q)) < (p->order < q->order);
}

static bool permit_is_queued(enum permit_state state)
{
	return state == PERMIT_WAITING || state == PERMIT_FIRST;
}

static void permit_line_up(struct permit *p)
{
	struct permit *before = TAILQ_LAST(&p->semaphore->line, permits);

	for (unsigned passed = 0; before && permit_comes_before(p, before) && passed < PASSED_MOST; passed++)
		before = TAILQ_PREV(before, permits, in_line);
	if (before)
		TAILQ_INSERT_AFTER(&p->semaphore->line, before, p, in_line);
	else
		TAILQ_INSERT_HEAD(&p->semaphore->line, p, in_line);
}

static struct permits *permit_list(struct semaphore *m, enum permit_state state)
{
	if (state == PERMIT_LOST)
		return &m->lost;
	return permit_is_queued(state) ? &m->line : &m->others;
}

void permit_enter(struct request_context *x, struct permit *p, enum permit_state state)
{
	struct semaphore *m = p->semaphore;
	struct permits *from = permit_list(m, p->state), *to = permit_list(m, state);
	bool was = permit_is_queued(p->state), is = permit_is_queued(state);
	int has = (state == PERMIT_HELD) - (p->state == PERMIT_HELD);

	if (from != to) {
		TAILQ_REMOVE(from, p, in_line);
		if (is)
			permit_line_up(p);
		else
			TAILQ_INSERT_TAIL(to, p, in_line);
	}
	m->waiters += (unsigned)is - was;
	p->bid.session->slots += (state == PERMIT_FIRST) * m->limit;
	p->bid.session->slots -= (p->state == PERMIT_FIRST) * m->limit;
	for (unsigned i = 0; i < p->asked_n && p->state == PERMIT_TRYING; i++)
		m->used[p->asked[i].slot]--;
	m->used[p->slot.slot] = (uint8_t)(m->used[p->slot.slot] + has);
	m->held += (unsigned)has;
	metric_add(&x->core->metrics, METRIC_PERMITS_HELD, has);
	metric_add(&x->core->metrics, METRIC_PERMITS_WAITING, is - was);
	if (permit_is_asking(p) && state >= PERMIT_HELD) {
		bid_answered(&p->bid, 1);
		p->bid.session->held++;
	}
	p->state = state;
	if (state == PERMIT_LOST) { /* the lost ones come first: see permit_forget_losses() */
		TAILQ_REMOVE(&p->bid.session->bids[BID_PERMIT], &p->bid, in_session);
		TAILQ_INSERT_HEAD(&p->bid.session->bids[BID_PERMIT], &p->bid, in_session);
	}
	if (state == PERMIT_FIRST)
		m->first = p;
	else if (m->first == p)
		m->first = NULL;
}

int64_t permit_valid_us(const struct request_context *x, const struct permit *p)
{
	int64_t mark = lock_valid_us(&x->engine->table, p->mark.claim->lock), slot = lock_valid_us(&x->engine->table, p->slot.claim->lock);

	return mark < slot ? mark : slot;
}
