/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounting of a round: which node was asked when, what it answered, what that vouches for. */
#include "daemon/core/op.h"

#include "daemon/base/mem.h"
#include "daemon/core/member.h"
#include "daemon/core/mutant.h"
#include "daemon/core/observe.h"

#include <stdlib.h>

#define SLOT_NONE UINT32_MAX

void op_table_init(struct op_table *t, struct core *core, struct members *members)
{
	memset(t, 0, sizeof(*t));
	t->core = core;
	t->members = members;
	t->free_head = SLOT_NONE;
	pool_init(&t->pool, sizeof(struct op));
}

static void op_put(struct op_table *t, struct op *op)
{
	free(op->others);
	pool_put(&t->pool, op);
}

void op_table_release(struct op_table *t)
{
	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i])
			op_put(t, t->slot[i]);
	free(t->slot);
	free(t->next_free);
	pool_release(&t->pool);
}

static void op_table_grow(struct op_table *t)
{
	uint32_t old = t->slots;

	t->slots = old ? 2 * old : 256;
	t->slot = mem_grow(t->slot, t->slots, sizeof(struct op *));
	t->next_free = mem_grow(t->next_free, t->slots, sizeof(*t->next_free));
	for (uint32_t i = t->slots; i-- > old;) {
		t->slot[i] = NULL;
		t->next_free[i] = t->free_head;
		t->free_head = i;
	}
}

struct op *op_new(struct op_table *t, enum op_kind kind, struct lock *l)
{
	struct op *op = pool_get(&t->pool);

	if (t->free_head == SLOT_NONE)
		op_table_grow(t);
	op->slot = t->free_head;
	t->free_head = t->next_free[op->slot];
	t->slot[op->slot] = op;
	t->live++;
	op->kind = kind;
	op->begun = t->core->now;
	op->lock = l;
	op->value = l->lease.value;
	op->ttl_us = l->lease.ttl_us;
	op->delay_us = l->lease.delay_us;
	op->px_us = l->lease.ttl_us + l->lease.delay_us;
	op->timer.kind = TIMER_OP;
	op->entry.class = kind == OP_LEAVE ? ADMISSION_LEAVE : ADMISSION_GIVE_BACK;
	op->entry.owner = OWNER_OP;
	votes_clear(&op->votes, t->core->conf.nodes);
	l->refs++;
	return op;
}

void op_free(struct op_table *t, struct op *op)
{
	heap_cancel(&t->core->timers, &op->timer);
	op->lock->refs--;
	t->slot[op->slot] = NULL;
	t->next_free[op->slot] = t->free_head;
	t->free_head = op->slot;
	t->live--;
	op_put(t, op);
}

static int64_t whole_ms(int64_t us)
{
	return (us + MSEC - 1) / MSEC;
}

/* The second round of an acquire, and what is left behind, go to nodes whatever became of them since. A quarantine's marker would open them to votes. */
static struct span op_marker(const struct member *m)
{
	return m->marker[0] == 'j' || MUTATED(GUARD_SKIPS_RENEWALS) ? span_of(m->marker) : SPAN("none");
}

static void op_send(struct op_table *t, struct op *op, unsigned node, struct call *call)
{
	call->id = op->slot;
	call->node = node;
	call->name = lock_name(op->lock);
	if (call->kind != CALL_WITHDRAW && call->kind != CALL_LOOK && call->value.n == 0)
		call->value = (struct span){op->value.text, op->value.n};
	if (call->kind == CALL_EXTEND)
		call->new_value = (struct span){op->value.text, op->value.n};
	call->marker = op_marker(&t->members->node[node]);
	op->sent[node] = t->core->now;
	nodeset_add(&op->asked, node);
	nodeset_add(&op->open, node);
	flow_sent(&t->members->node[node].flow, t->core->now);
	core_call(t->core, call);
}

/*
 * The key may stand there from now on, at most until its TTL is over. How late the store may set it depends on how roughly its clock is known now: an answer that
 * comes before the connection breaks may tell the clock better.
 */
static void op_placed(struct op_table *t, struct op *op, unsigned node)
{
	struct instant until = instant_add(t->core->now, t->core->conf.timeout_us + op->px_us + op->px_us / 50 + SEC);
	struct member *m = &t->members->node[node];

	if (!MUTATED(WIDTH_FORGOTTEN))
		member_note_width(m, m->clock.high - m->clock.low);
	nodeset_add(&op->lock->lease.placed, node);
	op->lock->lease.px_until = instant_max(op->lock->lease.px_until, until);
	if (op->px_us > op->lock->lease.px_us)
		op->lock->lease.px_us = op->px_us;
}

/*
 * What sets a key comes in time or not at all: nobody would release what it sets later. And not when the lease may be over without it: the next run of
 * the daemon would take it for a key that stood there all the time.
 */
static int64_t op_in_time_ms(const struct op_table *t, unsigned node)
{
	return member_server_ms(&t->members->node[node], instant_add(t->core->now, t->core->conf.timeout_us));
}

static int64_t op_not_after_ms(const struct op_table *t, unsigned node, struct instant lease_end)
{
	int64_t in_time = op_in_time_ms(t, node), least = member_server_ms_least(&t->members->node[node], lease_end);

	return least < in_time ? least : in_time;
}

static int64_t op_acquire_by_ms(const struct op_table *t, const struct op *op, unsigned node)
{
	const struct member_clock *clock = &t->members->node[node].clock;

	if (2 * (t->core->conf.timeout_us + clock->high - clock->low) < op->ttl_us || MUTATED(ACQUIRE_OUTLIVES_LEASE))
		return op_in_time_ms(t, node); /* whatever its clock is, the lease is not over by then */
	return op_not_after_ms(t, node, vote_until(t->core->now, op->ttl_us));
}

void op_send_acquire(struct op_table *t, struct op *op, unsigned node, int64_t proposal, struct span ticket, int64_t grace_us)
{
	struct call call = {.kind = CALL_ACQUIRE, .px_ms = whole_ms(op->px_us), .fence = proposal, 
	                    .range = op->range, .ticket = ticket, .ticket_ms = TICKET_US / MSEC, .grace_ms = whole_ms(grace_us)};

	if (!MUTATED(LATE_ACQUIRE))
		call.not_after_ms = op_acquire_by_ms(t, op, node);
	op_send(t, op, node, &call);
	op_placed(t, op, node);
}

void op_send_extend(struct op_table *t, struct op *op, unsigned node, int64_t floor, struct instant put_back)
{
	struct call call = {.kind = CALL_EXTEND, .px_ms = whole_ms(op->px_us), .fence = floor, .create = instant_before(t->core->now, put_back)};

	call.range = members_were_set_back(t->members, floor);
	if (call.create)
		call.not_after_ms = op_not_after_ms(t, node, put_back);
	op_send(t, op, node, &call);
	op_placed(t, op, node);
}

void op_send_raise(struct op_table *t, struct op *op, unsigned node, bool beyond)
{
	struct call call = {.kind = CALL_EXTEND, .px_ms = whole_ms(op->px_us), .fence = op->fence + op->range, .range = beyond};

	op_send(t, op, node, &call);
	op_placed(t, op, node);
}

void op_send_adopt(struct op_table *t, struct op *op, unsigned node, int64_t floor, struct span from)
{
	struct call call = {.kind = CALL_EXTEND, .px_ms = whole_ms(op->px_us), .fence = floor};
	char *text = arena_alloc(&t->core->out->arena, from.n);

	call.range = members_were_set_back(t->members, floor);
	memcpy(text, from.p, from.n);
	call.prior = (struct span){text, from.n};
	(void)span_word(&call.prior, &call.value);
	op_send(t, op, node, &call);
	op_placed(t, op, node);
}

void op_send_withdraw(struct op_table *t, struct op *op, unsigned node)
{
	struct call call = {.kind = CALL_WITHDRAW, .ticket = {op->value.text, op->value.n}};

	op_send(t, op, node, &call);
}

void op_send_release(struct op_table *t, struct op *op, unsigned node)
{
	struct call call = {.kind = CALL_RELEASE, .prior = span_of(op->others ? op->others : "")};

	op_send(t, op, node, &call);
}

void op_send_leave(struct op_table *t, struct op *op, unsigned node)
{
	struct call call = {.kind = CALL_EXTEND, .px_ms = whole_ms(op->px_us), .exact = true, .prior = span_of(op->others)};

	/* A lock-delay counts from the end of the hold: it does not begin anew at a store that hears of it late. */
	call.at_most = op->px_us <= op->delay_us;
	(void)span_word(&call.prior, &call.value);
	op_send(t, op, node, &call);
}

void op_send_look(struct op_table *t, struct op *op, unsigned node)
{
	struct call call = {.kind = CALL_LOOK};

	op_send(t, op, node, &call);
}

/*
 * joined: no answer has shown so far, nor does this one, that the store may have lost what others had there, as a clock does that was set forward. Else what it
 * has granted or put back stands there, and is no vote.
 */
static void op_count(struct op *op, const struct answer *a, bool joined)
{
	static const uint64_t holder_key[2] = {0, 0};

	if (a->class == ANSWER_UNKNOWN)
		return;
	if (a->class == ANSWER_REFUSED) {
		nodeset_add(&op->no, a->node);
		return;
	}
	switch (a->code) {
	case 'G':
	case 'A':
		if (!joined && !MUTATED(JUMP_VOTES))
			break;
		__attribute__((fallthrough));
	case 'E':
	case 'R':
		nodeset_add(&op->yes, a->node);
		op->base[a->node] = a->fence;
		op->votes.until[a->node] = vote_until(op->sent[a->node], op->ttl_us);
		break;
	case 'F':
		nodeset_add(&op->over, a->node);
		nodeset_add(&op->no, a->node);
		break;
	case 'W':
		nodeset_add(&op->behind, a->node);
		nodeset_add(&op->no, a->node);
		break;
	case 'K':
		nodeset_add(&op->alien, a->node);
		__attribute__((fallthrough));
	case 'B':
		nodeset_add(&op->busy, a->node);
		op->base[a->node] = a->pttl_ms;
		op->holder[a->node] = siphash(holder_key, a->holder.p ? a->holder.p : "", a->holder.n);
		__attribute__((fallthrough));
	default:
		nodeset_add(&op->no, a->node);
	}
}

/* What was carried out before its clock jumped, and is heard after it was known, ends that much sooner. */
static struct instant op_sent(const struct member *m, const struct answer *a, struct instant sent)
{
	struct instant earliest = {a->server_us - m->clock.high};

	return a->server_us && m->clock.known ? instant_min(sent, earliest) : sent;
}

struct op *op_answered(struct op_table *t, const struct answer *a)
{
	struct op *op = a->call < t->slots ? t->slot[a->call] : NULL;

	if (!op || !nodeset_has(op->open, a->node))
		return NULL;
	nodeset_remove(&op->open, a->node);
	flow_answered(&t->members->node[a->node].flow, op->sent[a->node], t->core->now, a->class == ANSWER_EXECUTED, t->core->conf.timeout_us);
	member_observe(t->members, a, op->sent[a->node]);
	op->sent[a->node] = op_sent(&t->members->node[a->node], a, op->sent[a->node]);
	if (MUTATED(VOTE_FROM_RECEIVE))
		op->sent[a->node] = t->core->now;
	op_count(op, a, t->members->node[a->node].state == MEMBER_JOINED);
	return op;
}

struct instant op_sent_last(const struct op_table *t, const struct op *op, struct nodeset nodes)
{
	struct instant last = op->begun;

	for (unsigned i = 0; i < t->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			last = instant_max(last, op->sent[i]);
	return last;
}

struct instant op_slow_at(const struct op_table *t, const struct op *op)
{
	return instant_add(op_sent_last(t, op, op->open), t->core->conf.timeout_us);
}

void op_stall(struct op_table *t, const struct op *op)
{
	for (unsigned i = 0; i < t->core->conf.nodes; i++)
		if (nodeset_has(op->open, i) && instant_diff(t->core->now, op->sent[i]) >= t->core->conf.timeout_us)
			member_stall(t->members, i);
}
