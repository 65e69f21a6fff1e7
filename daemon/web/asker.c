/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See asker.h. The lines of the service for a session (web_send, web_hangup) come in here, and are kept. A separate event delivers them, so that no callback
 * runs inside a step of the service.
 */
#include "daemon/web/asker.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/web/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define PASS_US        INT64_C(200) /* how long lines of all askers are read in a pass of the loop, with the steps of the service that they cause */
#define LINES_PER_TURN 16           /* of one asker, before the next */

/* A timer, because the loop would handle an event that a callback activates before it polls the sockets again. */
static void askers_work_next(struct askers *all)
{
	const struct timeval at_once = {0};

	event_add(all->work, &at_once);
}

static void asker_is_due(struct asker *a)
{
	struct askers *all = &a->web->askers;

	if (a->due)
		return;
	TAILQ_INSERT_TAIL(&all->due, a, in_due);
	a->due = true;
	askers_work_next(all);
}

bool asker_open(struct web *w, struct asker *a, const struct peer *peer)
{
	struct askers *all = &w->askers;
	struct peer who = *peer;
	unsigned i = 0;

	while (i < all->n && (all->slot[i] || w->sink.taken(w->sink.context, all->first + i)))
		i++;
	if (i == all->n || w->paused || w->stopping)
		return false;
	all->slot[i] = a;
	if (++all->generation[i] == 0)
		all->generation[i] = 1;
	a->web = w;
	a->session = (uint64_t)all->generation[i] << 32 | (all->first + i);
	buf_init(&a->in);
	who.is_web = !w->room;
	w->sink.open(w->sink.context, a->session, &who);
	return true;
}

static void asker_drop(struct asker *a)
{
	if (a->due)
		TAILQ_REMOVE(&a->web->askers.due, a, in_due);
	a->due = false;
	a->web->askers.slot[(uint32_t)a->session - a->web->askers.first] = NULL;
	a->session = 0;
	buf_release(&a->in);
}

static void asker_goes(struct asker *a, enum gone how)
{
	uint64_t session = a->session;
	bool hung_up = a->hung_up;

	if (!session)
		return;
	asker_drop(a);
	if (!hung_up)
		a->web->sink.gone(a->web->sink.context, session, how);
}

void asker_close(struct asker *a)
{
	asker_goes(a, GONE_HANGUP);
}

void asker_send(struct asker *a, const char *format, ...)
{
	char line[REPLY_MAX];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (!a->hung_up && n > 0 && (size_t)n < sizeof(line))
		a->web->sink.line(a->web->sink.context, a->session, line, (size_t)n);
}

static struct asker *asker_of(const struct web *w, uint64_t session)
{
	uint32_t i = w ? (uint32_t)session - w->askers.first : 0;
	struct asker *a = w && i < w->askers.n ? w->askers.slot[i] : NULL;

	return a && a->session == session ? a : NULL;
}

bool web_has(const struct web *w, uint64_t session)
{
	return asker_of(w, session);
}

/* Pushes come faster than they are read. All waiting ones are dropped, so the next one comes after the gap. */
static void asker_drop_pushes(struct asker *a)
{
	size_t n = buf_length(&a->in), length;
	const char *line = buf_begin(&a->in), *end;
	struct buf kept;

	buf_init(&kept);
	for (; n > 0 && (end = memchr(line, '\n', n)); line += length, n -= length) {
		length = (size_t)(end - line) + 1;
		if (line[0] == '!')
			a->dropped++;
		else
			buf_append(&kept, line, length);
	}
	buf_release(&a->in);
	a->in = kept;
}

void web_send(struct web *w, uint64_t session, const void *bytes, size_t n)
{
	struct asker *a = asker_of(w, session);

	if (!a)
		return;
	if (a->most > 0 && buf_length(&a->in) + n > a->most)
		asker_drop_pushes(a);
	buf_append(&a->in, bytes, n);
	asker_is_due(a);
}

void web_await_sent(struct web *w, uint64_t session)
{
	struct asker *a = asker_of(w, session);

	if (!a)
		return;
	a->awaits = true;
	asker_is_due(a);
}

void web_hangup(struct web *w, uint64_t session)
{
	struct asker *a = asker_of(w, session);

	if (!a)
		return;
	a->hung_up = true;
	asker_is_due(a);
}

/* False: no whole line is left, or the asker was closed. */
static bool asker_next(struct asker *a)
{
	uint64_t session = a->session;
	struct web *w = a->web;
	size_t length = buf_length(&a->in);
	char *begin = buf_begin(&a->in), *end = length ? memchr(begin, '\n', length) : NULL;
	struct reply_line line;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - begin);
	if (!reply_parse(begin, n, &line))
		a->line(a, &line);
	if (asker_of(w, session) != a)
		return false;
	buf_consume(&a->in, n + 1);
	return true;
}

static void asker_work(struct asker *a)
{
	struct web *w = a->web;
	uint64_t session = a->session;
	unsigned lines = 0;
	bool more = true;

	while (more && lines < LINES_PER_TURN && (lines == 0 || askers_have_time(w))) {
		more = asker_next(a);
		lines++;
	}
	if (asker_of(w, session) != a)
		return;
	if (more) {
		asker_is_due(a);
	} else if (a->hung_up) {
		asker_drop(a);
		a->over(a);
	} else if (a->awaits) {
		a->awaits = false;
		w->sink.sent(w->sink.context, session);
	}
}

bool askers_have_time(const struct web *w)
{
	return instant_before(clock_boottime(), w->askers.pass_end);
}

static void on_work(evutil_socket_t fd, short what, void *context)
{
	struct web *w = context;
	struct asker *a;

	(void)fd, (void)what;
	w->askers.pass_end = instant_add(clock_boottime(), PASS_US);
	while ((a = TAILQ_FIRST(&w->askers.due))) {
		TAILQ_REMOVE(&w->askers.due, a, in_due);
		a->due = false;
		asker_work(a);
		if (!askers_have_time(w))
			break;
	}
	if (!TAILQ_EMPTY(&w->askers.due))
		askers_work_next(&w->askers);
}

int askers_init(struct web *w)
{
	struct askers *all = &w->askers;

	all->first = w->room ? WEB_SESSIONS : 0;
	all->n = w->room ? API_SESSIONS : WEB_SESSIONS;
	all->slot = mem_alloc(all->n * sizeof(struct asker *));
	all->generation = mem_alloc(all->n * sizeof(*all->generation));
	all->work = evtimer_new(w->base, on_work, w);
	return w->askers.work ? 0 : -ENOMEM;
}

void askers_end(struct web *w, enum gone how)
{
	for (unsigned i = 0; i < w->askers.n; i++) {
		struct asker *a = w->askers.slot[i];

		if (!a)
			continue;
		asker_goes(a, how);
		a->over(a);
	}
}

void askers_silence(struct web *w)
{
	for (unsigned i = 0; i < w->askers.n; i++)
		if (w->askers.slot[i])
			w->askers.slot[i]->hung_up = true;
}

void askers_release(struct web *w)
{
	for (unsigned i = 0; i < w->askers.n; i++)
		if (w->askers.slot[i])
			asker_drop(w->askers.slot[i]);
	mem_free(w->askers.slot);
	mem_free(w->askers.generation);
	if (w->askers.work)
		event_free(w->askers.work);
}
