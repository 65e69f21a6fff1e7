/* SPDX-License-Identifier: BSD-2-Clause */
/* See admission.h. */
#include "daemon/core/member/admission.h"

#include "daemon/base/map.h"

#define WINDOW_FIRST 256
#define WINDOW_MOST  1024
#define WINDOW_FEW   16 /* with a window this small, a long or uneven network path may explain the delay: the window is halved only at the timeout */
#define GROWTH       8 /* how much the window grows for each window of answers */

void flow_begin(struct flow *f, unsigned most)
{
	f->most = most ? most : WINDOW_MOST;
	f->window = f->most < WINDOW_FIRST ? f->most : WINDOW_FIRST;
	f->credit = 0;
	f->least_us = INT64_MAX;
	f->halved = INSTANT_PAST;
}

void flow_sent(struct flow *f, struct instant now)
{
	if (f->open++ == 0)
		f->answered_at = now;
}

static void flow_grow(struct flow *f)
{
	f->credit += GROWTH;
	if (f->credit < f->window)
		return;
	f->credit = 0;
	if (f->window < f->most)
		f->window++;
}

/* Halves once for all calls that were under way together. */
static void flow_halve(struct flow *f, struct instant sent, struct instant now, unsigned least)
{
	if (instant_before(sent, f->halved))
		return;
	f->window = f->window / 2 > least ? f->window / 2 : least;
	f->halved = now;
}

void flow_answered(struct flow *f, struct instant sent, struct instant now, bool executed, int64_t timeout_us)
{
	int64_t took = instant_diff(now, sent);
	bool used = 2 * f->open >= f->window; /* otherwise answers in time say nothing about a larger window */

	f->open--;
	f->answered_at = now;
	if (!executed)
		return;
	/* If no call is open after an answer, only the network path was measured, even if the path has become longer. */
	if (took < f->least_us || f->open == 0)
		f->least_us = took < timeout_us ? took : timeout_us;
	if (took >= timeout_us)
		flow_halve(f, sent, now, 1);
	else if (f->window > WINDOW_FEW && 3 * (took - f->least_us) > timeout_us - f->least_us)
		flow_halve(f, sent, now, WINDOW_FEW);
	else if (used)
		flow_grow(f);
}

#define RELEASES_A_ROUND 2 /* a round that fails makes two releases: of its value and of its ticket */

void admission_init(struct admission *a)
{
	heap_init(&a->keep);
	TAILQ_INIT(&a->give_back);
	turns_init(&a->ask);
	a->odd = a->asks_later = false;
	a->given_back = 0;
}

void admission_release(struct admission *a)
{
	heap_release(&a->keep);
	turns_release(&a->ask);
}

static bool class_is_kept(enum admission_class class)
{
	return class == ADMISSION_KEEP || class == ADMISSION_LEAVE;
}

static bool keeps_none(const struct admission *a)
{
	return a->keep.count == 0;
}

/* Nothing waits that would be admitted before a new entry of this class. */
static bool is_first(const struct admission *a, enum admission_class class)
{
	switch (class) {
	case ADMISSION_KEEP:
	case ADMISSION_LEAVE:
		return keeps_none(a);
	case ADMISSION_GIVE_BACK:
		return keeps_none(a) && TAILQ_EMPTY(&a->give_back);
	case ADMISSION_ASK:
		break;
	}
	return admission_is_idle(a) && !a->asks_later;
}

static bool has_room(enum admission_class class, enum room room)
{
	return room == ROOM_FOR_ALL || (room == ROOM_FOR_RELEASES && (class == ADMISSION_LEAVE || class == ADMISSION_GIVE_BACK));
}

bool admission_ask(const struct admission *a, const struct admission_entry *x, enum room room)
{
	enum admission_class class = (enum admission_class)x->class;

	return is_first(a, class) && has_room(class, room);
}

void admission_queue(struct admission *a, struct admission_entry *x, struct instant urgent_at, struct origin *whose)
{
	enum admission_class class = (enum admission_class)x->class;

	if (class_is_kept(class))
		heap_set(&a->keep, &x->urgent, class == ADMISSION_LEAVE ? INSTANT_PAST : urgent_at);
	else if (class == ADMISSION_ASK)
		turn_wait(&a->ask, &x->turn, whose);
	else
		TAILQ_INSERT_TAIL(&a->give_back, x, link);
	x->waits = true;
	x->parked = false;
}

void admission_park(struct admission_entry *x)
{
	x->waits = x->parked = true;
}

void admission_leave(struct admission *a, struct admission_entry *x)
{
	if (!x->waits)
		return;
	if (class_is_kept((enum admission_class)x->class))
		heap_cancel(&a->keep, &x->urgent);
	else if (x->class == ADMISSION_GIVE_BACK)
		TAILQ_REMOVE(&a->give_back, x, link);
	else if (!x->parked)
		turn_leave(&x->turn);
	x->waits = x->parked = false;
}

/* Whether the next entry to be admitted is of KEEP or LEAVE. */
static bool keep_is_next(struct admission *a, bool alone, struct instant now)
{
	a->odd = !a->odd;
	return !keeps_none(a) && (a->odd || alone || !instant_before(now, heap_first(&a->keep)->at));
}

/* The first of KEEP and LEAVE; NULL: none. A key that is to be left comes before all leases. */
static struct admission_entry *first_kept(const struct admission *a)
{
	return keeps_none(a) ? NULL : container_of(heap_first(&a->keep), struct admission_entry, urgent);
}

/* The first of ASK; NULL: none. */
static struct admission_entry *first_asked(const struct admission *a)
{
	struct turn *turn = turns_first(&a->ask);

	return turn ? container_of(turn, struct admission_entry, turn) : NULL;
}

/* The first of GIVE_BACK and ASK. */
static struct admission_entry *first_other(const struct admission *a)
{
	struct admission_entry *given_back = TAILQ_FIRST(&a->give_back), *asked = a->asks_later ? NULL : first_asked(a);

	return asked && (a->given_back == RELEASES_A_ROUND || !given_back) ? asked : given_back;
}

static struct admission_entry *pick(struct admission *a, enum room room, struct instant now)
{
	struct admission_entry *kept = first_kept(a), *other;

	if (room == ROOM_NONE)
		return NULL;
	if (room == ROOM_FOR_RELEASES)
		return kept && kept->class == ADMISSION_LEAVE ? kept : TAILQ_FIRST(&a->give_back);
	other = first_other(a);
	if (keep_is_next(a, !other, now))
		return kept;
	a->given_back = a->given_back == RELEASES_A_ROUND ? 0 : a->given_back + 1;
	return other;
}

struct admission_entry *admission_next(struct admission *a, enum room room, struct instant now)
{
	struct admission_entry *x = pick(a, room, now);

	if (x && x->class == ADMISSION_ASK)
		turn_taken(&x->turn);
	if (x)
		admission_leave(a, x);
	return x;
}
