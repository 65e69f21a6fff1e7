/* SPDX-License-Identifier: BSD-2-Clause */
/* See watch_news.h. */
#include "daemon/core/reply/watch_news.h"

#include "daemon/base/mem.h"
#include "daemon/core/session/rules.h"

/* What a step may spend: 1 for a comparison with a prefix; 16 for a line to a session, and 1 for 64 bytes of it. To send them takes the pass as long again. */
#define TOLD_A_STEP 32768
#define TOLD_LINE   16
#define TOLD_BYTES  64
#define KEPT_MOST   ((size_t)4 << 20) /* bytes of events kept for the next steps */

struct event_kept {
	TAILQ_ENTRY(event_kept) next;
	struct instant since;
	uint64_t number;
	size_t name_n, line_n;
	char bytes[]; /* the name, and the line */
};

void news_init(struct request_context *x)
{
	TAILQ_INIT(&x->news.kept);
	x->news.number = INT64_MAX; /* from which news_were_missed() counts back */
}

static size_t event_bytes(size_t name_n, size_t line_n)
{
	return sizeof(struct event_kept) + name_n + line_n;
}

static void news_drop_first(struct request_context *x)
{
	struct event_kept *k = TAILQ_FIRST(&x->news.kept);

	TAILQ_REMOVE(&x->news.kept, k, next);
	x->news.kept_bytes -= event_bytes(k->name_n, k->line_n);
	mem_free(k);
}

void news_free(struct request_context *x)
{
	while (!TAILQ_EMPTY(&x->news.kept))
		news_drop_first(x);
}

static bool news_has_time(const struct request_context *x)
{
	return x->news.told < core_portion(x->core, TOLD_A_STEP);
}

/* A prefix brings nothing of what was before it was watched. */
static bool watching_includes(const struct watching *w, struct span name, struct instant since, uint64_t number)
{
	const struct prefix *p;

	TAILQ_FOREACH(p, &w->prefixes, next)
		if (number > p->after && !instant_before(since, p->since) && span_starts(name, (struct span){p->bytes, p->n}))
			return true;
	return false;
}

static void news_tell_one(struct request_context *x, const struct watching *w, struct span line)
{
	struct effect *effect = effects_add(x->core->out, EFFECT_SEND);

	w->session->unsent += line.n;
	effect->send.session = w->session->id;
	effect->send.bytes = line;
	x->news.told += TOLD_LINE + (unsigned)(line.n / TOLD_BYTES);
}

/* False: the step had no time for all of them. Those who were told are not told again. */
static bool news_tell(struct request_context *x, struct span name, struct instant since, uint64_t number, struct span line)
{
	struct watching *w;

	TAILQ_FOREACH(w, &x->watchings, in_watchings) {
		if (w->told >= number)
			continue;
		if (!news_has_time(x))
			return false;
		w->told = number;
		x->news.told += w->count;
		if (!w->session->over && watching_includes(w, name, since, number) &&
		    session_may_look_at(x->core, w->session, name, &x->news.told))
			news_tell_one(x, w, line);
	}
	return true;
}

static void news_tell_missed(struct request_context *x)
{
	struct watching *w;
	struct reply r;
	struct span line;

	x->news.missed = false;
	TAILQ_FOREACH(w, &x->watchings, in_watchings) {
		uint64_t events = news_untold(x, w);

		w->told = x->news.number;
		if (w->session->over || events == 0)
			continue;
		reply_begin(&r, session_line(x->sessions), SPAN(""), "! EVENT");
		reply_text(&r, "kind", SPAN("missed"));
		reply_int(&r, "count", (int64_t)events);
		line = (struct span){r.start, reply_end(&r)};
		arena_commit(&x->core->out->arena, line.n);
		news_tell_one(x, w, line);
	}
}

static void news_keep(struct request_context *x, struct span name, struct instant since, struct span line)
{
	struct event_kept *k;

	if (x->news.missed || x->news.kept_bytes + event_bytes(name.n, line.n) > KEPT_MOST) {
		x->news.missed = true;
		return;
	}
	k = mem_alloc(event_bytes(name.n, line.n));
	x->news.kept_bytes += event_bytes(name.n, line.n);
	k->since = since;
	k->number = x->news.number;
	k->name_n = name.n;
	k->line_n = line.n;
	memcpy(k->bytes, name.p, name.n);
	memcpy(k->bytes + name.n, line.p, line.n);
	TAILQ_INSERT_TAIL(&x->news.kept, k, next);
	request_context_again(x);
}

void news_send(struct request_context *x, struct span name, struct instant since, struct reply *r)
{
	struct span line = {r->start, reply_end(r)};

	x->news.number++;
	if (x->news.missed || !TAILQ_EMPTY(&x->news.kept) || !news_has_time(x)) {
		news_keep(x, name, since, line);
		return;
	}
	arena_commit(&x->core->out->arena, line.n);
	if (!news_tell(x, name, since, x->news.number, line))
		news_keep(x, name, since, line);
}

uint64_t news_untold(const struct request_context *x, const struct watching *w)
{
	return x->news.number - w->told;
}

void news_were_missed(struct request_context *x, struct watching *w, uint64_t events)
{
	w->told = x->news.number - events;
	x->news.missed |= events > 0;
}

void news_again(struct request_context *x)
{
	struct event_kept *k;

	while ((k = TAILQ_FIRST(&x->news.kept)) && news_has_time(x) &&
	       news_tell(x, (struct span){k->bytes, k->name_n}, k->since, k->number,
	                 (struct span){arena_copy(&x->core->out->arena, k->bytes + k->name_n, k->line_n), k->line_n}))
		news_drop_first(x);
	if (k)
		request_context_again(x);
	else if (x->news.missed)
		news_tell_missed(x);
}
