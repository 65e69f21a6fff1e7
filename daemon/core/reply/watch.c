/* SPDX-License-Identifier: BSD-2-Clause */
/* See watch.h. */
#include "daemon/core/reply/watch.h"

#include "daemon/base/mem.h"
#include "daemon/core/event/core.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "proto/decimal.h"

static uint64_t news_unsent(const struct request_context *x, const struct watching *w);

/*
 * The work of a step: 1 for a comparison with a prefix; 16 for a line to a session, and 1 for each 64 bytes of it. The pass of the loop needs as long again to
 * send them.
 */
#define NEWS_A_STEP 32768
#define NEWS_LINE   16
#define NEWS_BYTES  64
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
	x->news.number = INT64_MAX; /* so high because news_were_missed() counts down from it */
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
	return x->news.cost < core_portion(x->core, NEWS_A_STEP);
}

/* A prefix does not include events from before it was watched. */
static bool watching_includes(const struct watching *w, struct span name, struct instant since, uint64_t number)
{
	const struct prefix *p;

	TAILQ_FOREACH(p, &w->prefixes, next)
		if (number > p->after && !instant_before(since, p->since) && span_starts(name, (struct span){p->bytes, p->n}))
			return true;
	return false;
}

static void news_send_to(struct request_context *x, const struct watching *w, struct span line)
{
	struct effect *effect = effects_add(x->core->out, EFFECT_SEND);

	w->session->unsent += line.n;
	effect->send.session = w->session->id;
	effect->send.bytes = line;
	x->news.cost += NEWS_LINE + (unsigned)(line.n / NEWS_BYTES);
}

/* False: the step had no time for all sessions. The event is not sent twice to the same one. */
static bool news_send_event(struct request_context *x, struct span name, struct instant since, uint64_t number, struct span line)
{
	struct watching *w;

	TAILQ_FOREACH(w, &x->watchings, in_watchings) {
		if (w->compared >= number)
			continue;
		if (!news_has_time(x))
			return false;
		w->compared = number;
		x->news.cost += w->count;
		if (!w->session->over && watching_includes(w, name, since, number) &&
		    session_may_look_at(x->core, w->session, name, &x->news.cost))
			news_send_to(x, w, line);
	}
	return true;
}

static void news_send_missed(struct request_context *x)
{
	struct watching *w;
	struct reply r;
	struct span line;

	x->news.missed = false;
	TAILQ_FOREACH(w, &x->watchings, in_watchings) {
		uint64_t events = news_unsent(x, w);

		w->compared = x->news.number;
		if (w->session->over || events == 0)
			continue;
		reply_begin(&r, session_line(x->sessions), SPAN(""), "! EVENT");
		reply_text(&r, "kind", SPAN("missed"));
		reply_int(&r, "count", (int64_t)events);
		line = (struct span){r.start, reply_end(&r)};
		arena_commit(&x->core->out->arena, line.n);
		news_send_to(x, w, line);
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
	if (!news_send_event(x, name, since, x->news.number, line))
		news_keep(x, name, since, line);
}

/* Returns how many events were not compared with its prefixes yet. In the next process after a restart, it has missed so many. */
static uint64_t news_unsent(const struct request_context *x, const struct watching *w)
{
	return x->news.number - w->compared;
}

static void news_were_missed(struct request_context *x, struct watching *w, uint64_t events)
{
	w->compared = x->news.number - events;
	x->news.missed |= events > 0;
}

void news_again(struct request_context *x)
{
	struct event_kept *k;

	while ((k = TAILQ_FIRST(&x->news.kept)) && news_has_time(x) &&
	       news_send_event(x, (struct span){k->bytes, k->name_n}, k->since, k->number,
	                 (struct span){arena_copy(&x->core->out->arena, k->bytes + k->name_n, k->line_n), k->line_n}))
		news_drop_first(x);
	if (k)
		request_context_again(x);
	else if (x->news.missed)
		news_send_missed(x);
}

#define PREFIXES_MOST      64            /* of one session, … */
#define PREFIXES_OF_PEER   256           /* … of those of one peer, … */
#define PREFIXES_OF_ALL    512           /* … and of all: each event is compared with each of them, and sent to as many sessions */
#define CONTENDED_APART_US (100 * MSEC)  /* between two CONTENDED about the same claim */

static struct watching *watching_of(struct request_context *x, struct session *s)
{
	struct watching *w = s->watching;

	if (w)
		return w;
	w = s->watching = mem_alloc(sizeof(*w));
	w->session = s;
	TAILQ_INIT(&w->prefixes);
	x->engine->watched++;
	return w;
}

static void watching_forget(struct request_context *x, struct watching *w, struct prefix *p)
{
	TAILQ_REMOVE(&w->prefixes, p, next);
	mem_free(p);
	x->prefixes--;
	if (--w->count == 0)
		TAILQ_REMOVE(&x->watchings, w, in_watchings);
}

void watch_drop(struct request_context *x, struct session *s)
{
	struct watching *w = s->watching;

	if (!w)
		return;
	while (!TAILQ_EMPTY(&w->prefixes))
		watching_forget(x, w, TAILQ_FIRST(&w->prefixes));
	x->engine->watched--;
	s->watching = NULL;
	mem_free(w);
}

bool watch_is_subscribed(const struct session *s)
{
	return s->watching && s->watching->subscribed;
}

static void watching_drop_if_unused(struct request_context *x, struct session *s)
{
	if (s->watching && s->watching->count == 0 && !s->watching->subscribed)
		watch_drop(x, s);
}

/* --- events --- */

static void report_audit(struct request_context *x, struct report of, const char *event, enum watch_kind kind)
{
	char digits[DECIMAL_MAX], *end = digits + sizeof(digits), *slot = of.limit > 0 ? decimal_write(end, of.permit) : end;
	const struct audit a = {
		.event = event,
		.session = of.session,
		.name = of.name,
		.permit = {slot, (size_t)(end - slot)},
		.trace = of.remark.trace,
		.fence = of.fence,
		.held_us = kind == WATCH_GRANTED ? -1 : instant_diff(x->core->now, of.granted_at),
		.reason = kind == WATCH_LOST ? loss_word(of.loss) : NULL,
	};

	audit_write(x->core, &a);
}

static void event_detail(struct request_context *x, struct reply *r, struct report of, enum watch_kind kind)
{
	if (kind == WATCH_WAITING)
		reply_ms(r, "waited_ms", instant_diff(x->core->now, of.asked_at));
	else if (of.limit > 0)
		reply_int(r, "permit", of.permit);
	if (kind != WATCH_WAITING)
		reply_int(r, "fence", of.fence);
	if (kind == WATCH_RELEASED || kind == WATCH_LOST)
		reply_ms(r, "held_ms", instant_diff(x->core->now, of.granted_at));
	if (kind == WATCH_LOST)
		reply_text(r, "reason", span_of(loss_word(of.loss)));
	if (of.shared)
		reply_text(r, "mode", SPAN("shared"));
	if (of.limit > 0)
		reply_int(r, "limit", of.limit);
	reply_int(r, "waiters", of.waiters);
	reply_owner(r, of.owner);
	reply_remark(r, of.remark);
}

void report_send(struct request_context *x, struct report of, enum watch_kind kind)
{
	static const char *const word[] = {
		[WATCH_GRANTED] = "granted", [WATCH_RELEASED] = "released", [WATCH_LOST] = "lost", [WATCH_WAITING] = "waiting"};
	char who[WHO_MAX];
	struct reply r;

	if (x->attends && (kind == WATCH_RELEASED || kind == WATCH_LOST))
		slow_hold(x, of.session, of.name, of.remark.trace, of.granted_at, kind == WATCH_LOST ? loss_word(of.loss) : "released");
	if (x->core->conf.audit && kind != WATCH_WAITING)
		report_audit(x, of, word[kind], kind);
	if (TAILQ_EMPTY(&x->watchings))
		return;
	reply_begin(&r, session_line(x->sessions), SPAN(""), "! EVENT");
	reply_text(&r, "kind", span_of(word[kind]));
	reply_text(&r, "name", of.name);
	reply_int(&r, "session", (int64_t)of.session->serial);
	reply_text(&r, "who", (struct span){who, session_who(of.session, who)});
	event_detail(x, &r, of, kind);
	/* A request that waited before a session began to watch is not reported to it. */
	news_send(x, of.name, kind == WATCH_WAITING ? of.asked_at : INSTANT_NEVER, &r);
}

void watch_report(struct request_context *x, const struct claim *c, enum watch_kind kind)
{
	struct session *s = c->session;
	const struct report of = report_of_claim(c);

	if (x->attends && kind == WATCH_GRANTED)
		alarms_set(x->core, ALARM_OF_CLAIM, c, ALARM_HELD, of.granted_at);
	else if (x->attends && kind == WATCH_WAITING) /* a waiting group is one request, whatever name it waits for now */
		alarms_set(x->core, s->principal ? ALARM_OF_GROUP : ALARM_OF_CLAIM, s->principal ? (const void *)s : c, ALARM_WAITED, of.asked_at);
	report_send(x, of, kind);
}

/* Returns the patient waiters here, plus one if other daemons want the name. */
static unsigned lock_waiters(const struct request_context *x, const struct lock *l)
{
	return l->contender->patient + lock_is_wanted(x, l);
}

static void send_contended(struct request_context *x, struct claim *c)
{
	c->contended_at = x->core->now;
	push(x, report_of_claim(c), "! CONTENDED", "waiters", lock_waiters(x, c->lock));
}

/* For a holder that has subscribed. If its grant is not delivered yet, it is told after that. */
static bool claim_may_notify(const struct request_context *x, const struct claim *c)
{
	return c->state == CLAIM_HELD && !c->not_notified && !c->asking && watch_is_subscribed(c->session) &&
	       c->lock->lease.state == LEASE_HELD && lock_waiters(x, c->lock) > 0 && session_may_look(x->core, c->session, lock_name(c->lock));
}

static bool contended_lately(const struct request_context *x, const struct claim *c)
{
	return c->contended_at.us && instant_diff(x->core->now, c->contended_at) < CONTENDED_APART_US;
}

void watch_send_waiters(struct request_context *x, struct claim *c)
{
	if (claim_may_notify(x, c))
		send_contended(x, c);
}

void watch_send_contended(struct request_context *x, const struct lock *l)
{
	for (struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		if (!contended_lately(x, c) && claim_may_notify(x, c))
			send_contended(x, c);
}

/* in_ms=-1: until nobody holds anything. */
static void send_drain(struct request_context *x, struct session *s)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), SPAN(""), "! DRAIN");
	reply_drain_end(x, &r);
	send_line(x, s, &r);
}

void watch_drain(struct request_context *x)
{
	for (uint32_t i = 0; i < x->sessions->slots; i++)
		if (x->sessions->slot[i] && watch_is_subscribed(x->sessions->slot[i]))
			send_drain(x, x->sessions->slot[i]);
}

/* --- the requests --- */

static struct span request_prefix(const struct request *q)
{
	return q->words > 0 ? q->word[0] : SPAN("");
}

static struct prefix *prefix_find(const struct session *s, struct span text)
{
	struct prefix *p;

	if (!s->watching)
		return NULL;
	TAILQ_FOREACH(p, &s->watching->prefixes, next)
		if (span_equal((struct span){p->bytes, p->n}, text))
			return p;
	return NULL;
}

static unsigned prefixes_of_peer(const struct request_context *x, const struct session *s)
{
	const struct watching *w;
	unsigned n = 0;

	TAILQ_FOREACH(w, &x->watchings, in_watchings)
		n += w->session->origin == s->origin ? w->count : 0;
	return n;
}

static bool prefix_refuse(struct request_context *x, struct session *s, const char *whose, int most)
{
	send_error(x, s, x->request.tag, ERROR_LIMIT, "%s may watch at most %d prefixes", whose, most);
	return false;
}

static bool prefix_has_room(struct request_context *x, struct session *s)
{
	if (s->watching && s->watching->count >= PREFIXES_MOST)
		return prefix_refuse(x, s, "a session", PREFIXES_MOST);
	if (x->prefixes >= PREFIXES_OF_PEER && !session_is_owner(x->core, s) && prefixes_of_peer(x, s) >= PREFIXES_OF_PEER)
		return prefix_refuse(x, s, "the sessions of one peer", PREFIXES_OF_PEER);
	return x->prefixes < PREFIXES_OF_ALL || prefix_refuse(x, s, "all sessions together", PREFIXES_OF_ALL);
}

static void watching_add(struct request_context *x, struct watching *w, struct span text)
{
	struct prefix *p = mem_alloc(sizeof(*p) + text.n);

	p->since = x->core->now;
	p->after = x->news.number;
	p->n = text.n;
	if (text.n > 0)
		memcpy(p->bytes, text.p, text.n);
	TAILQ_INSERT_TAIL(&w->prefixes, p, next);
	x->prefixes++;
	if (w->count++ > 0)
		return;
	w->compared = x->news.number;
	TAILQ_INSERT_TAIL(&x->watchings, w, in_watchings);
}

static void reply_watched(struct request_context *x, struct session *s)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), x->request.tag, "OK");
	reply_int(&r, "prefixes", s->watching ? s->watching->count : 0);
	send_line(x, s, &r);
}

void watch_remember(struct request_context *x, const struct session *s)
{
	struct journal_record r = {.kind = JOURNAL_WATCH, .connection = (int64_t)s->id};
	const struct prefix *p;

	if (watch_is_subscribed(s)) {
		r.flags = JOURNAL_SUBSCRIBED;
		remember(x, &r);
		r.flags = 0;
	}
	if (!s->watching)
		return;
	r.sequence = (int64_t)news_unsent(x, s->watching);
	TAILQ_FOREACH(p, &s->watching->prefixes, next) {
		r.line = (struct span){p->bytes, p->n};
		remember(x, &r);
	}
}

void watch_restore(struct request_context *x, struct session *s, const struct journal_record *r)
{
	if (r->flags & JOURNAL_SUBSCRIBED) {
		watching_of(x, s)->subscribed = true;
		return;
	}
	if (!prefix_find(s, r->line))
		watching_add(x, watching_of(x, s), r->line);
	news_were_missed(x, s->watching, (uint64_t)r->sequence);
}

void serve_WATCH(struct request_context *x, struct session *s)
{
	struct span text = request_prefix(&x->request);

	if (text.n > NAME_MAX_BYTES) {
		send_invalid(x, s, ERROR_LIMIT, "a prefix may have at most %d bytes, as a name", NAME_MAX_BYTES);
		return;
	}
	if (!prefix_find(s, text)) {
		if (!prefix_has_room(x, s))
			return;
		watching_add(x, watching_of(x, s), text);
	}
	reply_watched(x, s);
}

void serve_UNWATCH(struct request_context *x, struct session *s)
{
	struct prefix *p = prefix_find(s, request_prefix(&x->request));

	if (!p) {
		send_error(x, s, x->request.tag, ERROR_NOTFOUND, "this session does not watch that prefix: UNWATCH takes the word of its WATCH");
		return;
	}
	watching_forget(x, s->watching, p);
	watching_drop_if_unused(x, s);
	reply_watched(x, s);
}

static void reply_subscribed(struct request_context *x, struct session *s)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), x->request.tag, "OK");
	send_line(x, s, &r);
}

/* The session may know of no waiter yet, so each lock that it holds is looked at. */
bool watch_subscribe(struct request_context *x, struct session *s)
{
	struct claim *c;

	reply_subscribed(x, s);
	if (watch_is_subscribed(s))
		return false;
	watching_of(x, s)->subscribed = true;
	TAILQ_FOREACH(c, &s->claims, in_session)
		if (!contended_lately(x, c))
			watch_send_waiters(x, c);
	if (x->engine->draining)
		send_drain(x, s);
	return true;
}

void serve_UNSUBSCRIBE(struct request_context *x, struct session *s)
{
	if (s->watching)
		s->watching->subscribed = false;
	watching_drop_if_unused(x, s);
	reply_subscribed(x, s);
}
