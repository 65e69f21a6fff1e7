/* SPDX-License-Identifier: BSD-2-Clause */
/* See take_places.h. */
#include "daemon/core/job/take_places.h"

#include "daemon/base/mem.h"
#include "daemon/core/reply/pending.h"

#define PLACES_MOST 256 /* however large limits.waiting is: they are sorted one by one */

struct take_place {
	TAILQ_ENTRY(take_place) in_session; /* the first one first */
	struct span queue;             /* owned */
	uint64_t number;               /* see take.place */
};

static void place_free(struct session *s, struct take_place *p)
{
	TAILQ_REMOVE(&s->places, p, in_session);
	job_text_free(&p->queue);
	mem_free(p);
}

void take_places_drop(struct session *s)
{
	while (!TAILQ_EMPTY(&s->places))
		place_free(s, TAILQ_FIRST(&s->places));
}

void take_places_lapse(const struct request_context *x, struct session *s)
{
	if (s->resumed && !instant_before(x->core->now, s->lasting->repeat_until))
		take_places_drop(s);
}

void take_places_keep(struct request_context *x, const struct take *take)
{
	struct session *s = take->session;
	struct take_place *kept = mem_alloc(sizeof(*kept)), *p, *before = NULL;
	uint64_t n = 1;

	kept->queue = job_text_keep(take->queue->name);
	kept->number = take->place;
	TAILQ_FOREACH(p, &s->places, in_session) {
		if (p->number < kept->number)
			before = p;
		n++;
	}
	if (before)
		TAILQ_INSERT_AFTER(&s->places, before, kept, in_session);
	else
		TAILQ_INSERT_HEAD(&s->places, kept, in_session);
	if (n > under_way_most(x->core, PLACES_MOST)) /* of places that were never asked for again */
		place_free(s, TAILQ_FIRST(&s->places));
}

/* Takes the first place that was kept for a TAKE of this queue; 0: there is none. */
static uint64_t place_again(struct request_context *x, struct session *s, struct span queue)
{
	struct take_place *p;

	take_places_lapse(x, s);
	TAILQ_FOREACH(p, &s->places, in_session)
		if (span_equal(p->queue, queue)) {
			uint64_t number = p->number;

			place_free(s, p);
			return number;
		}
	return 0;
}

void take_places_take_over(struct session *to, struct session *from)
{
	TAILQ_CONCAT(&to->places, &from->places, in_session);
}

void place_stand(struct request_context *x, struct take *take)
{
	struct take *other;

	take->place = take->patient ? place_again(x, take->session, take->queue->name) : 0;
	if (take->place == 0) {
		take->place = ++x->places;
		take_join_line(x, take, NULL);
		return;
	}
	TAILQ_FOREACH(other, &take->queue->waiting, in_queue)
		if (other->place > take->place)
			break;
	take_join_line(x, take, other);
}
