/* SPDX-License-Identifier: BSD-2-Clause */
/* See rehome.h. It asks one thing at a time: a look goes from store to store, from queue to queue, and from job to job. */
#include "daemon/core/rehome.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/job.h"
#include "daemon/core/queuerows.h"
#include "daemon/core/stored.h"

#include <stdio.h>

#define SOON_US  SEC        /* before a look: when one store joins, others do */
#define APART_US (2 * SEC)  /* from one look to the next */
#define AGAIN_US (100 * MSEC) /* before a store is asked again that did not answer */
#define LATER_US (10 * SEC) /* before what could not be moved is tried again */
#define LEASE_US (10 * SEC) /* for which a job is leased while it is moved */

enum rehome_step {
	REHOME_RESTS,
	REHOME_LISTS,  /* a store is asked for its queues */
	REHOME_LEASES, /* … and, if it is not the home of one, for a job of it */
	REHOME_STORES, /* the home is told to store the job */
	REHOME_ENDS,   /* it is done where it was, or given back */
};

struct rehome {
	enum job_asker asker;
	enum rehome_step step;
	struct timer timer;      /* RESTS: the next look; else what was asked is asked again */
	struct home_question *question; /* under way; NULL: none */
	uint64_t joins;          /* of stores, as the last look began; 0: that did not see all */
	struct instant looked_at; /* when it began */
	unsigned place;          /* which store is looked at: its place for the name "*" */
	int64_t from;            /* where the piece begins that is read of its list of queues, which is sorted */
	struct span queue;       /* owned: the one that is moved from there, or was last; "": none */
	unsigned moved;          /* jobs of that queue */
	bool again;              /* some job was moved: another look follows, since the lists have changed */
	struct instant next_at;  /* when something that stayed may be due */
	/* The job. */
	struct span id, lock, payload; /* owned */
	int64_t failed;          /* attempts */
	int64_t due_ms;          /* by the clock of the store where it is … */
	int64_t ahead_ms;        /* … which that of the home is ahead of by so much: one figure for all jobs of the queue, so that they keep their order */
	struct lease_value value; /* with which it is leased there … */
	struct instant until;    /* … no longer than that */
	bool unsure;             /* STORES: its home may have stored it */
	bool stored;             /* ENDS: it is at its home */
};

static unsigned rehome_node(const struct commander *x, const struct rehome *r)
{
	return rendezvous_node(x->core, HOME_OF_QUEUE, SPAN("*"), r->place);
}

static void rehome_rest_until(struct commander *x, struct rehome *r, struct instant at)
{
	r->step = REHOME_RESTS;
	heap_set(&x->core->timers, &r->timer, at);
}

static void rehome_come_at(struct rehome *r, struct instant at)
{
	r->next_at = instant_min(r->next_at, at);
}

/* --- what is asked --- */

/* The queue's store at the place where the jobs are: not its home. */
static unsigned place_of_node(const struct commander *x, struct span queue, unsigned node)
{
	unsigned place = 1;

	while (place + 1 < x->core->conf.nodes && rendezvous_node(x->core, HOME_OF_QUEUE, queue, place) != node)
		place++;
	return place;
}

static void ask_where_it_is(struct commander *x, struct rehome *r, struct home_question *q)
{
	home_ask(x->engine, q, place_of_node(x, r->queue, rehome_node(x, r)));
}

static void ask_list(struct commander *x, struct rehome *r)
{
	struct home_question *q = r->question = job_question(x, SPAN("*"), "queues", r);

	netstring_put_int(&q->words, r->from);
	home_ask(x->engine, q, r->place);
}

static void ask_lease(struct commander *x, struct rehome *r)
{
	struct home_question *q = r->question = job_question(x, r->queue, "take", r);

	lock_value_make(&x->engine->table, members_one_clock_us(&x->engine->members, x->core->now), &r->value);
	r->until = instant_add(x->core->now, LEASE_US);
	q->joined = true;
	netstring_put(&q->words, value_in_text(x->core, &r->value));
	netstring_put_int(&q->words, LEASE_US / MSEC);
	netstring_put_int(&q->words, (int64_t)x->core->conf.limits.attempts);
	netstring_put_int(&q->words, 0); /* not known by when */
	netstring_put(&q->words, span_of(x->core->daemon_id));
	netstring_put_int(&q->words, 0); /* nobody waits */
	netstring_put_int(&q->words, 0);
	netstring_put_int(&q->words, 0); /* behind no job */
	netstring_put(&q->words, SPAN(""));
	netstring_put_int(&q->words, whole_ms(x->core->conf.jobs_keep_us));
	ask_where_it_is(x, r, q);
}

/* Every try has the same nonce, so that the home carries one out. The job has the place there that it had, and as many attempts left. */
static void ask_store(struct commander *x, struct rehome *r)
{
	const struct member *home = &x->engine->members.node[rendezvous_node(x->core, HOME_OF_QUEUE, r->queue, 0)];
	struct home_question *q = r->question = job_question(x, r->queue, "defer", r);

	netstring_put(&q->words, r->id);
	netstring_put(&q->words, r->payload);
	netstring_put(&q->words, r->lock);
	netstring_put_int(&q->words, 0);
	netstring_put_int(&q->words, (int64_t)x->core->conf.limits.jobs);
	netstring_put(&q->words, value_in_text(x->core, &r->value));
	netstring_put_int(&q->words, member_server_ms(home, r->until));
	stored_put_terms(x, NULL, &q->words);
	netstring_put_int(&q->words, whole_ms(x->core->conf.jobs_keep_us));
	netstring_put_int(&q->words, r->due_ms + r->ahead_ms);
	netstring_put_int(&q->words, r->failed);
	home_ask(x->engine, q, 0);
}

static void ask_end(struct commander *x, struct rehome *r)
{
	struct home_question *q = r->question = job_question(x, r->queue, r->stored ? "done" : "back", r);

	q->joined = true;
	netstring_put(&q->words, value_in_text(x->core, &r->value));
	if (!r->stored)
		netstring_put_int(&q->words, 0); /* wakes nobody */
	ask_where_it_is(x, r, q);
}

static void rehome_ask(struct commander *x, struct rehome *r)
{
	static void (*const ask[])(struct commander *, struct rehome *) = {
		[REHOME_LISTS] = ask_list, [REHOME_LEASES] = ask_lease, [REHOME_STORES] = ask_store, [REHOME_ENDS] = ask_end};

	ask[r->step](x, r);
}

static void rehome_step(struct commander *x, struct rehome *r, enum rehome_step step)
{
	r->step = step;
	rehome_ask(x, r);
}

/* --- a look --- */

static void look_begin(struct commander *x, struct rehome *r)
{
	r->joins = x->engine->members.joins;
	r->looked_at = x->core->now;
	r->place = 0;
	r->from = 0;
	r->again = false;
	r->next_at = INSTANT_NEVER;
	job_text_free(&r->queue);
	rehome_step(x, r, REHOME_LISTS);
}

static void look_over(struct commander *x, struct rehome *r)
{
	if (r->again)
		rehome_come_at(r, instant_add(x->core->now, SOON_US));
	r->step = REHOME_RESTS;
	if (instant_before(r->next_at, INSTANT_NEVER))
		rehome_rest_until(x, r, instant_max(r->next_at, instant_add(x->core->now, SOON_US)));
}

static void next_store(struct commander *x, struct rehome *r)
{
	r->place++;
	r->from = 0;
	job_text_free(&r->queue);
	if (r->place < x->core->conf.nodes)
		rehome_step(x, r, REHOME_LISTS);
	else
		look_over(x, r);
}

/* What may be moved of this queue has been. */
static void queue_over(struct commander *x, struct rehome *r)
{
	unsigned home = rendezvous_node(x->core, HOME_OF_QUEUE, r->queue, 0);

	if (r->moved > 0)
		core_log(x->core, LOG_NOTICE, "queue-moved", "queue=%s from=%s to=%s jobs=%u note=\"the set of stores has changed\"",
		         core_quoted(x->core, r->queue), x->core->conf.label[rehome_node(x, r)], x->core->conf.label[home], r->moved);
	rehome_step(x, r, REHOME_LISTS);
}

/* By how much the clock of that store is ahead of that of this one, as far as is known. */
static int64_t clock_ahead_ms(const struct commander *x, unsigned node, unsigned of)
{
	int64_t one = member_server_ms(&x->engine->members.node[of], x->core->now), other = member_server_ms(&x->engine->members.node[node], x->core->now);

	return one > 0 && other > 0 ? other - one : 0;
}

static void queue_begin(struct commander *x, struct rehome *r, struct span queue)
{
	job_text_set(&r->queue, queue);
	r->ahead_ms = clock_ahead_ms(x, rendezvous_node(x->core, HOME_OF_QUEUE, queue, 0), rehome_node(x, r));
	r->moved = 0;
	rehome_step(x, r, REHOME_LEASES);
}

/* --- what is told --- */

/* Of its queues the store has told nothing, or nothing that makes sense. One that cannot be asked is looked at when it has joined; else all are again. */
static void list_missed(struct commander *x, struct rehome *r, const struct home_question *q)
{
	if (x->engine->members.node[q->node].state == MEMBER_JOINED)
		r->joins = 0; /* if queues are used then */
	next_store(x, r);
}

/* It has jobs that are to be moved, and comes behind the last one. */
static bool queue_is_astray(const struct commander *x, const struct rehome *r, const struct queue_row *row)
{
	return row->name.n > 0 && row->figure[0] + row->figure[1] > 0 && rendezvous_node(x->core, HOME_OF_QUEUE, row->name, 0) != rehome_node(x, r) &&
	       (r->queue.n == 0 || span_compare(row->name, r->queue) > 0);
}

static void list_told(struct commander *x, struct rehome *r, const struct home_question *q)
{
	struct span text = q->text;
	struct queue_row row;
	int64_t next = -1;

	if (q->outcome != HOME_ANSWERED || q->code != 'T' || !netstring_next_int(&text, &next)) {
		list_missed(x, r, q);
		return;
	}
	while (queue_row_read(&text, &row))
		if (queue_is_astray(x, r, &row)) {
			queue_begin(x, r, row.name);
			return;
		}
	if (next < 0) {
		next_store(x, r);
	} else if (next <= r->from) {
		list_missed(x, r, q); /* the same piece, for ever */
	} else {
		r->from = next;
		rehome_step(x, r, REHOME_LISTS);
	}
}

static void job_keep_texts(struct rehome *r, const struct job_leased *leased)
{
	job_text_set(&r->id, leased->id);
	job_text_set(&r->lock, leased->lock);
	job_text_set(&r->payload, leased->payload);
	r->failed = (int64_t)leased->attempt - 1;
	r->due_ms = leased->due_ms;
	r->unsure = false;
}

static void lease_told(struct commander *x, struct rehome *r, const struct home_question *q)
{
	struct span text = q->text;
	struct job_leased leased;
	int64_t next_ms = -1;

	if (q->outcome == HOME_ANSWERED && q->code == 'J' && job_read(&text, &leased)) {
		jobs_note_failed(x, r->queue, text);
		job_keep_texts(r, &leased);
		rehome_step(x, r, REHOME_STORES);
		return;
	}
	if (q->outcome != HOME_ANSWERED || q->code != 'W' || !netstring_next_int(&text, &next_ms))
		rehome_come_at(r, instant_add(x->core->now, LATER_US));
	else if (next_ms >= 0)
		rehome_come_at(r, instant_add(x->core->now, next_ms < LATER_US / MSEC ? next_ms * MSEC + MSEC : LATER_US));
	queue_over(x, r);
}

/* Asks again, as long as the lease lasts. False: it is over, and so the job is due again where it is, unless it was done. */
static bool rehome_retry(struct commander *x, struct rehome *r)
{
	struct instant at = instant_add(x->core->now, AGAIN_US);

	if (!instant_before(at, r->until))
		return false;
	heap_set(&x->core->timers, &r->timer, at);
	return true;
}

static void give_up(struct commander *x, struct rehome *r)
{
	rehome_come_at(r, instant_add(x->core->now, LATER_US));
	queue_over(x, r);
}

/* A try that was refused, or came too late, says nothing of the one before. Where it is not known, the job is not given back: it would be due at both. */
static void store_told(struct commander *x, struct rehome *r, const struct home_question *q)
{
	bool answered = q->outcome == HOME_ANSWERED && q->code != 'L';

	r->stored = answered && q->code == 'D';
	r->unsure |= q->outcome == HOME_UNKNOWN;
	if (answered || !r->unsure)
		rehome_step(x, r, REHOME_ENDS);
	else if (!rehome_retry(x, r))
		give_up(x, r);
}

static void end_told(struct commander *x, struct rehome *r, const struct home_question *q)
{
	if (q->outcome != HOME_ANSWERED) {
		if (!rehome_retry(x, r))
			give_up(x, r);
		return;
	}
	r->moved += r->stored;
	r->again |= r->stored;
	if (r->stored)
		rehome_step(x, r, REHOME_LEASES);
	else
		give_up(x, r);
}

void rehome_told(struct commander *x, struct home_question *q)
{
	static void (*const told[])(struct commander *, struct rehome *, const struct home_question *) = {
		[REHOME_LISTS] = list_told, [REHOME_LEASES] = lease_told, [REHOME_STORES] = store_told, [REHOME_ENDS] = end_told};
	struct rehome *r = q->about;

	r->question = NULL;
	told[r->step](x, r, q);
}

void rehome_fired(struct commander *x)
{
	struct rehome *r = x->rehome;

	if (r->step != REHOME_RESTS)
		rehome_ask(x, r);
	else if (!x->engine->stopping)
		look_begin(x, r);
}

/* --- when --- */

/* A store that is alone is the home of all. */
void rehome_look(struct commander *x)
{
	struct rehome *r = x->rehome;

	if (x->core->conf.nodes < 2)
		return;
	if (!r) {
		r = x->rehome = mem_alloc(sizeof(*r));
		r->asker = ASKER_REHOME;
		r->timer.kind = TIMER_REHOME;
		r->next_at = INSTANT_NEVER;
	}
	r->again = true;
	if (r->step == REHOME_RESTS)
		rehome_rest_until(x, r, instant_max(instant_add(x->core->now, SOON_US), instant_add(r->looked_at, APART_US)));
}

void rehome_note(struct commander *x)
{
	if ((x->rehome ? x->rehome->joins : 0) != x->engine->members.joins && !(x->rehome && timer_is_set(&x->rehome->timer)))
		rehome_look(x);
}

void rehome_free(struct commander *x)
{
	struct rehome *r = x->rehome;

	if (!r)
		return;
	if (r->question)
		r->question->about = NULL;
	heap_cancel(&x->core->timers, &r->timer);
	job_text_free(&r->queue);
	job_text_free(&r->id);
	job_text_free(&r->lock);
	job_text_free(&r->payload);
	mem_free(r);
	x->rehome = NULL;
}
