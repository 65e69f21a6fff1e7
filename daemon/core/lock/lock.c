/* SPDX-License-Identifier: BSD-2-Clause */
/* See lock.h. */
#include "daemon/core/lock/lock.h"

#include "daemon/base/mem.h"
#include "daemon/core/event/core.h"

#include <inttypes.h>

static int64_t step_of(unsigned ring, struct instant at)
{
	return at.us / (SEC << 4 * ring);
}

static void ring_look(struct kept_ring *r, int64_t step)
{
	if (step - r->step >= KEPT_STEPS)
		r->step = step - KEPT_STEPS; /* each place is cleared once */
	for (; r->step < step; r->step++) {
		uint32_t *over = &r->ends[r->step % KEPT_STEPS];

		r->total -= *over;
		*over = 0;
	}
}

uint64_t kept_bytes_count(struct kept_bytes *k, struct instant now)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < KEPT_RINGS; i++) {
		ring_look(&k->ring[i], step_of(i, now));
		total += k->ring[i].total;
	}
	return total;
}

static void kept_bytes_add(struct kept_bytes *k, struct instant now, int64_t keep_us, size_t bytes)
{
	unsigned i = 0;

	while (i + 1 < KEPT_RINGS && keep_us > 64 * (SEC << 4 * i))
		i++;
	(void)kept_bytes_count(k, now);
	k->ring[i].ends[step_of(i, instant_add(now, keep_us)) % KEPT_STEPS] += (uint32_t)bytes;
	k->ring[i].total += bytes;
}

void kept_names_add(struct kept_names *k, const struct origin *o, struct instant now, int64_t us, size_t n)
{
	kept_bytes_add(&k->all, now, us, n + NAME_BYTES);
	kept_bytes_add(kept_of_peer(k, o), now, us, n + NAME_BYTES);
}

/* The lock table: the lists of locks, claims and notices. Nothing here asks a store or notifies a session. */

/* A name of at most this many bytes has room in a lock; most have the first size. A longer name is on the heap. */
static const size_t name_least[LOCK_SIZES] = {24, 56};

/* Bytes of a lock before its name. */
static size_t lock_head(const struct lock_table *t)
{
	return sizeof(struct lock) + t->core->conf.nodes * sizeof(struct instant);
}

/* Whether a lock has room for a name of n bytes. */
static bool lock_has_room(const struct lock_table *t, size_t n)
{
	return n <= t->name_most[LOCK_SIZES - 1];
}

/* The pool for the lock of such a name. */
static struct pool *lock_pool(struct lock_table *t, size_t n)
{
	return &t->locks[n > t->name_most[0] && lock_has_room(t, n)];
}

void lock_table_init(struct lock_table *t, struct core *core)
{
	uint64_t key[2] = {rng_next(&core->rng), rng_next(&core->rng)};

	memset(t, 0, sizeof(*t));
	t->core = core;
	map_init(&t->map, key);
	readers_init(&t->readers, key);
	readers_init(&t->losses, key);
	for (unsigned i = 0; i < LOCK_SIZES; i++) {
		pool_init(&t->locks[i], lock_head(t) + name_least[i]);
		t->name_most[i] = t->locks[i].size - lock_head(t);
	}
	pool_init(&t->contenders, sizeof(struct contender));
	pool_init(&t->renewals, sizeof(struct renewal));
	pool_init(&t->askings, sizeof(struct asking));
	pool_init(&t->claims, sizeof(struct claim));
	pool_init(&t->pendings, sizeof(struct pending));
	pool_init(&t->shares, sizeof(struct share));
}

void lock_make_contender(struct lock_table *t, struct lock *l)
{
	struct contender *k = pool_get(&t->contenders);

	k->name = &l->name;
	k->timer.kind = TIMER_CONTENDER;
	k->entry.class = ADMISSION_ASK;
	k->entry.owner = OWNER_CONTENDER;
	TAILQ_INIT(&k->waiters);
	TAILQ_INIT(&k->losses);
	k->lost = &t->losses;
	l->contender = k;
}

static void lock_drop_contender(struct lock_table *t, struct lock *l)
{
	struct contender *k = l->contender;

	if (timer_is_set(&k->timer))
		heap_cancel(&t->core->timers, &k->timer); /* nobody is left to admit */
	assert(!k->entry.waits && !k->round && k->ticket.us == 0 && !nodeset_any(k->ticket_at));
	pool_put(&t->contenders, k);
	l->contender = &t->no_contender;
}

void lease_make_renewal(struct lock_table *t, struct lease *x)
{
	struct renewal *b = pool_get(&t->renewals);

	b->lease = x;
	b->entry.class = ADMISSION_KEEP;
	b->entry.owner = OWNER_LEASE;
	TAILQ_INIT(&b->extends);
	x->renewal = b;
}

static void lease_drop_renewal(struct lock_table *t, struct lease *x)
{
	pool_put(&t->renewals, x->renewal);
	x->renewal = &t->no_renewal;
}

static inline void lock_uncharge(struct lock *l)
{
	struct origin *o = l->origin;

	if (!o)
		return;
	o->all->names -= l->name.n + NAME_BYTES;
	o->names -= l->name.n + NAME_BYTES;
	if (o->sessions == 0)
		origin_drop_if_unused(o);
}

void lock_charge_anew(struct lock *l, struct origin *o)
{
	if (!o || o == l->origin)
		return;
	lock_uncharge(l);
	l->origin = NULL;
	(void)lock_charge(l, o);
}

static void lock_free(struct lock_table *t, struct lock *l)
{
	lock_uncharge(l);
	if (!renewal_is_none(l->lease.renewal)) {
		mem_free(l->lease.renewal->adoption);
		pool_put(&t->renewals, l->lease.renewal);
	}
	if (!contender_is_none(l->contender))
		pool_put(&t->contenders, l->contender);
	if (!lock_has_room(t, l->name.n))
		mem_free(l->name.text);
	pool_put(lock_pool(t, l->name.n), l);
}

void lock_table_release(struct lock_table *t)
{
	struct map_node *node, *next;

	assert(!t->no_contender.name && contender_is_blank(&t->no_contender) && !t->no_renewal.lease && TAILQ_EMPTY(&t->no_renewal.extends));
	for (node = map_next(&t->map, NULL); node; node = next) {
		struct lock *l = container_of(node, struct lock, name.node);
		struct claim *c;
		struct pending *p;

		next = map_next(&t->map, node);
		while ((c = l->holder)) {
			lock_remove_holder(l, c);
			claim_free(t, c);
		}
		lock_end_share(t, l);
		while ((c = TAILQ_FIRST(&l->contender->waiters))) {
			contender_dequeue(l->contender, c);
			claim_free(t, c);
		}
		while ((c = TAILQ_FIRST(&l->contender->losses))) {
			lock_remove_loss(c);
			claim_free(t, c);
		}
		while ((p = TAILQ_FIRST(&l->lease.renewal->extends))) {
			TAILQ_REMOVE(&l->lease.renewal->extends, p, in_lease);
			pending_free(&t->pendings, p);
		}
		lock_free(t, l);
	}
	readers_release(&t->readers);
	readers_release(&t->losses);
	map_release(&t->map);
	for (unsigned i = 0; i < LOCK_SIZES; i++)
		pool_release(&t->locks[i]);
	pool_release(&t->contenders);
	pool_release(&t->renewals);
	pool_release(&t->askings);
	pool_release(&t->claims);
	pool_release(&t->pendings);
	pool_release(&t->shares);
}

MAP_MATCH(lock_matches, struct lock, name.node, name.text, name.n)

struct lock *lock_find_text(struct lock_table *t, struct span text)
{
	struct map_node *node = map_find(&t->map, map_hash(&t->map, text.p, text.n), text.p, text.n, lock_matches);

	return node ? container_of(node, struct lock, name.node) : NULL;
}

static struct lock *lock_add(struct lock_table *t, struct span name, uint64_t hash)
{
	bool has_room = lock_has_room(t, name.n);
	struct lock *l = pool_get(&t->locks[has_room && name.n > t->name_most[0]]);

	if (has_room)
		l->name.text = memcpy((char *)l + lock_head(t), name.p, name.n);
	else
		l->name.text = mem_copy(name.p, name.n);
	l->name.n = (uint16_t)name.n;
	l->contender = &t->no_contender;
	l->lease.timer.kind = TIMER_LEASE;
	l->lease.name = &l->name;
	l->lease.renewal = &t->no_renewal;
	l->lease.renew_at = INSTANT_NEVER;
	map_insert(&t->map, &l->name.node, hash);
	return l;
}

struct lock *lock_find_or_add_text(struct lock_table *t, struct span text)
{
	uint64_t hash = map_hash(&t->map, text.p, text.n);
	struct map_node *node = map_find(&t->map, hash, text.p, text.n, lock_matches);

	return node ? container_of(node, struct lock, name.node) : lock_add(t, text, hash);
}

static struct span name_escape(struct span name, char room[1 + NAME_MAX_BYTES])
{
	if (name.n > NAME_MAX_BYTES)
		return name;
	room[0] = NAME_ESCAPE;
	memcpy(room + 1, name.p, name.n);
	return (struct span){room, 1 + name.n};
}

struct lock *lock_find_escaped(struct lock_table *t, struct span name)
{
	char room[1 + NAME_MAX_BYTES];

	return lock_find_text(t, name_escape(name, room));
}

struct lock *lock_find_or_add_escaped(struct lock_table *t, struct span name)
{
	char room[1 + NAME_MAX_BYTES];

	return lock_find_or_add_text(t, name_escape(name, room));
}

void lock_drop_if_unused(struct lock_table *t, struct lock *l)
{
	if (!contender_is_none(l->contender) && contender_is_blank(l->contender))
		lock_drop_contender(t, l);
	if (!renewal_is_none(l->lease.renewal) && lease_is_at_rest(&l->lease))
		lease_drop_renewal(t, &l->lease);
	if (l->name.refs > 0 || !lock_is_idle(l) || !TAILQ_EMPTY(&l->contender->waiters) || !TAILQ_EMPTY(&l->contender->losses) ||
	    !TAILQ_EMPTY(&l->lease.renewal->extends))
		return;
	assert(!timer_is_set(&l->contender->timer) && !timer_is_set(&l->lease.timer));
	map_remove(&t->map, &l->name.node);
	lock_free(t, l);
}

void lock_begin_lease(struct lock *l, const struct lease_value *value, const struct placed *placed)
{
	lease_begin(&l->lease, value, placed);
	if (contender_is_none(l->contender))
		return;
	l->contender->handoffs = 0;
	l->contender->want_since.us = 0;
}

void lock_value_make(struct lock_table *t, int64_t since_us, struct lease_value *ret_value)
{
	value_make(t->core, ++t->values, since_us, ret_value);
}

int64_t lock_retry_us(const struct lock_table *t, const struct lock *l)
{
	int64_t left;

	switch (l->lease.state) {
	case LEASE_HELD:
		left = instant_diff(lock_deadline(t, l), t->core->now);
		break;
	case LEASE_CLOSING:
		left = instant_diff(lock_close_at(l), t->core->now);
		break;
	default:
		if (!l->contender->elsewhere.known || l->contender->elsewhere.pttl_ms < 0)
			return -1;
		left = l->contender->elsewhere.pttl_ms * MSEC - instant_diff(t->core->now, l->contender->elsewhere.at);
	}
	return left > 0 ? left : 0;
}

struct claim *claim_new(struct lock_table *t)
{
	struct claim *c = pool_get(&t->claims);

	c->timer.kind = TIMER_CLAIM;
	return c;
}

void claim_begin_asking(struct lock_table *t, struct claim *c)
{
	c->asking = pool_get(&t->askings);
}

void claim_end_asking(struct lock_table *t, struct claim *c)
{
	if (c->asking)
		claim_leave_twins(c);
	pool_put(&t->askings, c->asking);
	c->asking = NULL;
}

void claim_free(struct lock_table *t, struct claim *c)
{
	claim_leave_crowd(c);
	claim_end_asking(t, c);
	heap_cancel(&t->core->timers, &c->timer);
	alarms_forget(t->core, c);
	mem_free(c->texts);
	pool_put(&t->claims, c);
}

/* The table in which its session finds it; NULL: none. */
static struct readers *claim_readers(const struct claim *c)
{
	if (c->state == CLAIM_LOST)
		return c->lock->contender->lost;
	return c->state == CLAIM_HELD && c->lock->share ? c->lock->share->readers : NULL;
}

void lock_pass_claim(struct claim *c, struct session *to)
{
	struct readers *r = claim_readers(c);

	if (r)
		readers_remove(r, c);
	c->session = to;
	if (r)
		readers_add(r, c);
}

void lock_add_reader(struct lock_table *t, struct lock *l, struct claim *c)
{
	if (!l->share) {
		l->share = pool_get(&t->shares);
		TAILQ_INIT(&l->share->holders);
		l->share->readers = &t->readers;
		l->share->ghost_until = INSTANT_PAST;
		l->share->want_at = t->core->now;
	}
	TAILQ_INSERT_TAIL(&l->share->holders, c, in_lock);
	readers_add(&t->readers, c);
	l->share->count++;
	l->holder = TAILQ_FIRST(&l->share->holders);
}

static bool reader_is_before(const struct claim *a, const struct claim *b)
{
	int64_t later = instant_diff(b->granted_at, a->granted_at);

	return later > 0 || (later == 0 && a->token < b->token);
}

void lock_order_reader(struct lock *l, struct claim *c)
{
	struct claim *at = TAILQ_PREV(c, claims, in_lock);

	while (at && reader_is_before(c, at))
		at = TAILQ_PREV(at, claims, in_lock);
	TAILQ_REMOVE(&l->share->holders, c, in_lock);
	if (at)
		TAILQ_INSERT_AFTER(&l->share->holders, at, c, in_lock);
	else
		TAILQ_INSERT_HEAD(&l->share->holders, c, in_lock);
	l->holder = TAILQ_FIRST(&l->share->holders);
}

void lock_remove_reader(struct lock *l, struct claim *c)
{
	TAILQ_REMOVE(&l->share->holders, c, in_lock);
	readers_remove(l->share->readers, c);
	l->share->count--;
	l->holder = TAILQ_FIRST(&l->share->holders);
	if (l->holder)
		lock_charge_anew(l, l->holder->origin);
}

void lock_end_share(struct lock_table *t, struct lock *l)
{
	assert(!l->holder);
	pool_put(&t->shares, l->share);
	l->share = NULL;
}

int64_t lock_extended_ttl(const struct lock *l)
{
	int64_t longest = lock_holders(l) > 1 ? l->lease.renew_ttl_us : 0;

	for (const struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		longest = c->ttl_us > longest ? c->ttl_us : longest;
	return longest;
}

struct claim *lock_find_reader(const struct lock *l, const struct session *session, struct span owner)
{
	return readers_find(l->share->readers, l, session, owner);
}

void lock_add_loss(struct lock_table *t, struct claim *c)
{
	struct contender *k = lock_contend(t, c->lock);

	c->state = CLAIM_LOST;
	TAILQ_INSERT_TAIL(&k->losses, c, in_lock);
	readers_add(k->lost, c);
}

void lock_remove_loss(struct claim *c)
{
	struct contender *k = c->lock->contender;

	TAILQ_REMOVE(&k->losses, c, in_lock);
	readers_remove(k->lost, c);
}

struct claim *lock_loss_of(const struct lock *l, const struct session *session, struct span owner)
{
	const struct contender *k = l->contender;

	return TAILQ_EMPTY(&k->losses) ? NULL : readers_find(k->lost, l, session, owner);
}

struct claim *lock_claim_of(const struct lock *l, const struct session *session, struct span owner)
{
	struct claim *c = lock_holder_of(l, session, owner);

	return c ? c : lock_loss_of(l, session, owner);
}

void notices_init(struct notices *n, struct lock_table *table)
{
	*n = (struct notices){.table = table};
}

void notices_release(struct notices *n)
{
	mem_free(n->item);
}

/* How many times the owner of this claim holds the lock now, if the notice reports that. */
static unsigned notices_count(enum notice_kind kind, const struct claim *c)
{
	const struct claim *holder = c->lock->holder;

	if (kind != NOTICE_REENTERED)
		return c->count;
	if (c->lock->share)
		holder = lock_find_reader(c->lock, c->session, claim_owner(c));
	return holder ? holder->count : 0;
}

void notices_add(struct notices *n, enum notice_kind kind, struct claim *c, struct pending *p, enum refusal why)
{
	if (n->count == n->cap) {
		n->cap = n->cap ? 2 * n->cap : 64;
		n->item = mem_grow(n->item, n->cap, sizeof(*n->item));
	}
	n->item[n->count++] = (struct notice){
		.kind = kind, .refusal = why, .claim = c, .pending = p, .count = c ? notices_count(kind, c) : 0};
	(c ? c->lock : p->lock)->name.refs++;
}

void notices_delivered(struct notices *n, const struct notice *delivered)
{
	struct lock *l = delivered->claim ? delivered->claim->lock : delivered->pending->lock;

	l->name.refs--;
	switch (delivered->kind) {
	case NOTICE_REENTERED:
	case NOTICE_REFUSED:
	case NOTICE_FORGOTTEN:
		claim_free(n->table, delivered->claim);
		break;
	case NOTICE_EXTENDED:
	case NOTICE_RELEASED:
	case NOTICE_SEEN:
		pending_free(&n->table->pendings, delivered->pending);
		break;
	default:
		break;
	}
	lock_drop_if_unused(n->table, l);
}

void notices_extended(struct notices *n, struct lease *x, unsigned count, enum refusal why)
{
	struct pending *p;

	while (count-- > 0 && (p = TAILQ_FIRST(&x->renewal->extends))) {
		TAILQ_REMOVE(&x->renewal->extends, p, in_lease);
		notices_add(n, NOTICE_EXTENDED, NULL, p, why);
	}
}
