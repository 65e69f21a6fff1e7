/* SPDX-License-Identifier: BSD-2-Clause */
/* See redial.h. */
#include "daemon/redis/redial.h"
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/redis/failure.h"
#include "daemon/redis/loop.h"

#include <stdlib.h>

#define MISSES_REPORTED 2 /* in a row: one alone may be a pause of the server */
#define SOONER      6 /* after a miss the next try comes that many times sooner */

struct redial {
	struct redial_sink sink;
	struct link *link;
	struct event *timer;
	int64_t every_us;
	struct endpoint home; /* the address of the node's connections */
	const struct addresses *all;
	unsigned at;   /* index in all: the last further address that was dialled */
	bool astray;   /* the last try was to a further address */
	unsigned misses;
};

static void redial_arm(struct redial *t)
{
	loop_arm(t->timer, t->misses ? t->every_us / SOONER : t->every_us);
}

static void redial_miss(struct redial *t, enum defect defect, const char *reason)
{
	t->misses += !t->astray;
	redial_arm(t);
	if (!t->astray && t->misses >= MISSES_REPORTED)
		t->sink.tried(t->sink.context, defect, reason);
	link_close(t->link, "");
}

static void redial_on_ready(void *context)
{
	struct redial *t = context;

	link_close(t->link, "");
	if (!t->astray)
		t->misses = 0;
	redial_arm(t);
	if (!t->astray)
		t->sink.tried(t->sink.context, DEFECT_NONE, "");
	t->sink.reached(t->sink.context, link_run_id(t->link));
}

static void redial_on_broken(void *context, enum defect defect, const char *reason)
{
	redial_miss(context, defect, reason);
}

/* It makes no calls. */
static void redial_on_answer(void *context, const struct answer *a)
{
	(void)context, (void)a;
}

/* The next further address; NULL: there is none. */
static const struct endpoint *redial_further(struct redial *t)
{
	const struct addresses *all = t->all;

	for (unsigned i = 0; i < all->count; i++) {
		t->at = (t->at + 1) % all->count;
		if (!endpoint_equal(&all->item[t->at], &t->home))
			return &all->item[t->at];
	}
	return NULL;
}

static void redial_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct redial *t = context;
	const struct endpoint *further = t->astray || t->misses ? NULL : redial_further(t), *to = further ? further : &t->home;
	int r = link_dial(t->link, (const struct sockaddr *)&to->name, to->n);

	t->astray = further;
	(void)fd, (void)what;
	if (r < 0)
		redial_miss(t, failure_dial_defect((const struct sockaddr *)&to->name, -r), failure_errno(-r));
}

struct redial *redial_new(struct event_base *base, const struct link_conf *conf, int64_t every_us, unsigned node, const struct redial_sink *sink)
{
	struct redial *t = mem_alloc(sizeof(*t));
	const struct link_sink link_sink = {
		.context = t, .ready = redial_on_ready, .broken = redial_on_broken, .script = {.context = t, .answer = redial_on_answer}};

	t->sink = *sink;
	t->every_us = every_us;
	t->link = link_new(base, conf, node, &link_sink);
	t->timer = loop_timer(base, redial_on_timer, t);
	return t;
}

void redial_free(struct redial *t)
{
	link_free(t->link);
	event_free(t->timer);
	free(t);
}

int64_t redial_cert_ends(const struct redial *t)
{
	return link_cert_ends(t->link);
}

void redial_expect(struct redial *t, const char *name)
{
	link_expect(t->link, name);
}

void redial_begin(struct redial *t, const struct endpoint *home, const struct addresses *all)
{
	t->home = *home;
	t->all = all;
	t->misses = 0;
	t->astray = false;
	if (redial_further(t))
		event_active(t->timer, EV_TIMEOUT, 0);
	else
		redial_arm(t);
}

void redial_end(struct redial *t)
{
	evtimer_del(t->timer);
	link_close(t->link, "");
}
