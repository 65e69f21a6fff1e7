/* SPDX-License-Identifier: BSD-2-Clause */
/* See show.h. */
#include "daemon/core/reply/show.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/remote_holders.h"
#include "daemon/core/reply/watch.h"

static void reply_texts(struct reply *r, const struct claim *c)
{
	reply_owner(r, claim_owner(c));
	reply_remark(r, claim_remark(c));
}

static void row_holder(struct request_context *x, struct session *s, struct span tag, const struct claim *c)
{
	struct reply r;

	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("holder"));
	reply_int(&r, "pos", 0);
	reply_session(x, &r, c->session);
	reply_int(&r, "fence", c->token);
	reply_ms(&r, "held_ms", instant_diff(x->core->now, c->granted_at));
	reply_ms(&r, "valid_ms", lock_valid_us(&x->engine->table, c->lock));
	reply_int(&r, "count", c->count);
	reply_mode(&r, c);
	reply_alarm(x, &r, c, ALARM_HELD);
	reply_texts(&r, c);
	row_end(x, s, &r);
}

/* Returns what is left of the TTL now, unless it was renewed; -1: it never expires. */
static int64_t elsewhere_ttl_ms(const struct request_context *x, const struct elsewhere *elsewhere)
{
	int64_t left = elsewhere->pttl_ms - instant_diff(x->core->now, elsewhere->at) / MSEC;

	return elsewhere->pttl_ms < 0 ? -1 : left > 0 ? left : 0;
}

/*
 * Nobody holds the name, and nobody gets it yet. The reason is UNLOCK keep=, a lock-delay, an older ticket, or a loss that its holder may not know of. left:
 * what is still at the stores, or NULL.
 */
static void row_kept(struct request_context *x, struct session *s, struct span tag, const struct elsewhere *left, int64_t ttl_ms)
{
	struct reply r;

	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("kept"));
	reply_int(&r, "pos", 0);
	if (left && left->kept) {
		reply_elsewhere(&r, left);
		reply_elsewhere_held(x, &r, left);
	}
	reply_int(&r, "ttl_ms", ttl_ms);
	row_end(x, s, &r);
}

/* The lease there may have passed from session to session meanwhile. */
static int64_t elsewhere_seen_ms(const struct request_context *x, const struct lock *l, const struct elsewhere *elsewhere)
{
	return elsewhere == &l->contender->elsewhere && !elsewhere->foreign ? split_seen_ms(x->engine, l->contender) : -1;
}

static void row_elsewhere(struct request_context *x, struct session *s, struct span tag, const struct lock *l, const struct elsewhere *elsewhere)
{
	int64_t seen_ms = elsewhere_seen_ms(x, l, elsewhere), held_us = -1;
	const struct holder_text *c = remote_holder_card(x, lock_name(l), elsewhere, &held_us);
	struct reply r;

	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("holder"));
	reply_int(&r, "pos", 0);
	reply_elsewhere(&r, elsewhere);
	if (c) {
		reply_remote_client(&r, c);
		reply_ms(&r, "held_ms", held_us);
	} else {
		reply_elsewhere_held(x, &r, elsewhere);
	}
	if (seen_ms >= 0)
		reply_int(&r, "seen_ms", seen_ms);
	reply_int(&r, "ttl_ms", elsewhere_ttl_ms(x, elsewhere));
	if (elsewhere->limit > 0)
		reply_int(&r, "limit", elsewhere->limit);
	else if (elsewhere->shared)
		reply_text(&r, "mode", SPAN("shared"));
	if (c)
		reply_remote_texts(&r, c);
	row_end(x, s, &r);
}

static void row_waiter(struct request_context *x, struct session *s, struct span tag, const struct claim *c, unsigned pos)
{
	struct reply r;

	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("waiter"));
	reply_int(&r, "pos", pos);
	reply_session(x, &r, c->session);
	reply_ms(&r, "waited_ms", instant_diff(x->core->now, c->asking->asked_at));
	if (c->priority > 0)
		reply_int(&r, "priority", c->priority);
	reply_mode(&r, c);
	reply_alarm(x, &r, c, ALARM_WAITED);
	reply_texts(&r, c);
	row_end(x, s, &r);
}

/* Claims that do not wait for holders are no waiters, because they exist for one round only. pos: the position before these rows. Returns the last position. */
static unsigned rows_waiters(struct request_context *x, struct session *s, struct span tag, const struct lock *l, size_t begin, unsigned pos)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &l->contender->waiters, in_lock) {
		if (!c->patient)
			continue;
		if (rows_take_long(x, s->unsent - begin))
			break;
		row_waiter(x, s, tag, c, ++pos);
	}
	return pos;
}

/* The first patient waiter here has the first place. */
static bool is_next(const struct request_context *x, const struct lock *l, const struct ticket_seen *next)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &l->contender->waiters, in_lock) {
		if (c->patient)
			return next->us < ticket_place_us(x->engine, c);
	}
	return true;
}

/* Sends a row for the daemon whose ticket is the first, if it comes before all waiters here. Returns the position of that row; 0: there is none. */
static unsigned row_next(struct request_context *x, struct session *s, struct span tag, const struct lock *l, const struct ticket_seen *next)
{
	struct elsewhere elsewhere = {.foreign = false};
	struct reply r;

	if (!next->us || next->own || !is_next(x, l, next))
		return 0;
	row_begin(x, tag, &r);
	reply_text(&r, "role", SPAN("waiter"));
	reply_int(&r, "pos", 1);
	memcpy(elsewhere.host, next->host, sizeof(elsewhere.host));
	reply_elsewhere(&r, &elsewhere);
	row_end(x, s, &r);
	return 1;
}

/* Whether the value at the stores is one of this daemon's, which no session here holds. So nobody has it. The memory store has no other values. */
static bool is_own(const struct request_context *x, const struct elsewhere *elsewhere)
{
	return !elsewhere->foreign && (!elsewhere->host[0] || !x->core->conf.shared);
}

/* Sends rows for the holders. Returns how many; 0: nobody, or it is not known. Of many readers it sends only those that fit. */
static unsigned rows_holders(struct request_context *x, struct session *s, struct span tag, const struct lock *l, const struct elsewhere *elsewhere)
{
	size_t begin = s->unsent;
	unsigned n = 0;

	for (const struct claim *c = l->holder; c && !rows_take_long(x, s->unsent - begin); c = lock_next_holder(l, c), n++)
		row_holder(x, s, tag, c);
	if (n > 0)
		return n;
	if (l->lease.state == LEASE_CLOSING)
		row_kept(x, s, tag, NULL, instant_diff(lock_close_at(l), x->core->now) / MSEC);
	else if (!elsewhere->known || elsewhere->outdated)
		return 0;
	else if (elsewhere->reserved || elsewhere->kept || is_own(x, elsewhere))
		row_kept(x, s, tag, elsewhere, elsewhere_ttl_ms(x, elsewhere));
	else
		row_elsewhere(x, s, tag, l, elsewhere);
	return 1;
}

static void show_done(struct request_context *x, struct session *s, struct span tag, unsigned rows, unsigned left_out, bool known, bool is_free)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_int(&r, "n", rows);
	if (left_out > 0)
		reply_int(&r, "more", left_out);
	if (!known)
		reply_text(&r, "known", SPAN("no"));
	if (is_free)
		reply_text(&r, "free", SPAN("yes"));
	session_send(x->sessions, s, r.start, reply_end(&r));
}

static bool wants(const struct request_context *x, enum field f)
{
	return request_has(&x->request, f) && x->request.field[f].number;
}

static const struct pending not_asked;

/* p: the pending with what the stores answered, or not_asked. */
static void show(struct request_context *x, struct session *s, struct span tag, const struct lock *l, const struct elsewhere *elsewhere,
		 const struct pending *p, bool formers)
{
	size_t begin = s->unsent;
	unsigned holders = lock_holders(l), first = rows_holders(x, s, tag, l, elsewhere), next = row_next(x, s, tag, l, &p->next);
	unsigned waiters = rows_waiters(x, s, tag, l, begin, next), left_out = holders > first ? holders - first : 0;
	unsigned former = formers ? former_rows(x, s, tag, lock_name(l)) : 0;

	show_done(x, s, tag, first + waiters + former, l->contender->patient + next - waiters + left_out, first > 0 || p->free,
		  first + next + waiters == 0 && p->free);
}

/* Whether this daemon keeps track of a holder elsewhere, because somebody here waits. What the stores reported before they fell silent may be outdated. */
static bool is_watched(const struct lock *l)
{
	return contender_is_between_rounds(l->contender) && l->contender->elsewhere.known && !l->contender->elsewhere.outdated;
}

static void show_send(struct request_context *x, struct session *s, const struct pending *p)
{
	const struct lock *l = p->lock;
	/* One of our rounds has begun since, or is being undone. Its value at the stores does not show who has the name. */
	bool undecided = !lock_is_idle(l) && is_own(x, &p->elsewhere);

	if (is_watched(l))
		show(x, s, span_of(p->tag), l, &l->contender->elsewhere, p, p->formers);
	else
		show(x, s, span_of(p->tag), l, undecided ? &not_asked.elsewhere : &p->elsewhere, p, p->formers);
}

/* Somebody elsewhere has the name, and its daemon may report who that is. */
static bool show_holds_back(struct request_context *x, const struct pending *p)
{
	struct pending of_holder = *p;

	if (p->lock->holder || x->engine->stopping)
		return false;
	if (is_watched(p->lock))
		of_holder.elsewhere = p->lock->contender->elsewhere;
	return of_holder.elsewhere.known && ask_daemon(x, &of_holder);
}

bool show_answer(struct request_context *x, struct session *s, const struct pending *p)
{
	if (show_holds_back(x, p))
		return false;
	show_send(x, s, p);
	return true;
}

/* Answers at once, because the stores need not be asked. */
static void show_at_once(struct request_context *x, struct session *s, struct lock *l)
{
	struct pending p = {.session = s, .lock = l, .verb = VERB_SHOW, .formers = wants(x, FIELD_FORMER)};

	request_keep_tag(&x->request, p.tag);
	if (is_watched(l) && show_holds_back(x, &p))
		s->busy |= p.tag[0] == '\0';
	else
		show(x, s, x->request.tag, l, &l->contender->elsewhere, &not_asked, p.formers);
}

/* --- semaphores --- */

static void row_permit(struct request_context *x, struct session *s, const struct permit *p, unsigned pos)
{
	struct reply r;

	row_begin(x, x->request.tag, &r);
	reply_text(&r, "role", pos == 0 ? SPAN("holder") : SPAN("waiter"));
	reply_int(&r, "pos", pos);
	reply_session(x, &r, p->bid.session);
	if (pos == 0) {
		reply_int(&r, "permit", p->slot.slot);
		reply_int(&r, "fence", p->fence);
		reply_ms(&r, "held_ms", instant_diff(x->core->now, p->granted_at));
		reply_ms(&r, "valid_ms", permit_valid_us(x, p));
	} else {
		reply_ms(&r, "waited_ms", instant_diff(x->core->now, p->bid.asked_at));
	}
	reply_int(&r, "limit", p->semaphore->limit);
	reply_alarm(x, &r, p, pos == 0 ? ALARM_HELD : ALARM_WAITED);
	if (pos > 0 && p->bid.priority > 0)
		reply_int(&r, "priority", p->bid.priority);
	reply_owner(&r, p->bid.owner);
	reply_remark(&r, kept_remark(&p->bid.remark));
	row_end(x, s, &r);
}

static void semaphore_show(struct request_context *x, struct session *s, const struct semaphore *m)
{
	size_t begin = s->unsent;
	unsigned rows = 0, left_out = 0, pos = 0;
	const struct permit *p;

	TAILQ_FOREACH(p, &m->others, in_line) {
		if (p->state != PERMIT_HELD)
			continue;
		if (rows_take_long(x, s->unsent - begin))
			left_out++;
		else
			row_permit(x, s, p, 0), rows++;
	}
	for (p = TAILQ_FIRST(&m->line); p && !rows_take_long(x, s->unsent - begin); p = TAILQ_NEXT(p, in_line))
		row_permit(x, s, p, ++pos), rows++;
	left_out += m->waiters - pos;
	rows_done(x, s, x->request.tag, rows, left_out > 0 ? (int64_t)left_out : -1);
}

/* The name is in use as a lock. Permits of it that are asked for now will be refused. */
static bool is_of_lock(const struct lock *l)
{
	return l && l->lease.state != LEASE_NONE && lock_mark(l) == 0;
}

void serve_SHOW(struct request_context *x, struct session *s)
{
	struct lock *l = lock_find(&x->engine->table, x->request.word[0]);
	const struct semaphore *m = semaphore_find(x, x->request.word[0]);
	struct pending *p;

	if (m && !semaphore_is_vacant(m) && !is_of_lock(l)) {
		semaphore_show(x, s, m);
		return;
	}
	/* Held or kept by this daemon, or asked for by it. */
	if (l && !wants(x, FIELD_ALL) && (is_watched(l) || l->lease.state != LEASE_NONE || l->contender->state == CONTENDER_ACQUIRING)) {
		show_at_once(x, s, l);
	} else if (pendings_within_limit(x, s)) {
		p = pending_of_request(x, s, lock_find_or_add(&x->engine->table, x->request.word[0]));
		p->formers = wants(x, FIELD_FORMER);
		ask_holder_begin(x->engine, p);
	}
}

/* --- no longer held back --------------------------------------------------------------------------------------------- */

static void show_due(struct request_context *x)
{
	struct pending *p;

	while ((p = ask_daemon_next_due(x))) {
		struct session *s = p->session;

		core_answers(x->core, VERB_SHOW);
		if (s) {
			TAILQ_REMOVE(&s->pendings, p, in_session);
			if (!s->over)
				show_send(x, s, p);
			session_answered(x->sessions, s, p->tag[0] != '\0');
		}
		ask_daemon_free_pending(x, p);
	}
}

void show_card(struct request_context *x, struct span message)
{
	ask_daemon_card(x, message);
	show_due(x);
}

void show_answered(struct request_context *x, const struct answer *a)
{
	ask_daemon_answered(x, a);
	show_due(x);
}

void show_fired(struct request_context *x)
{
	ask_daemon_fired(x);
	show_due(x);
}

/* Returns the holder that has had it longest, except this owner: a reader that asks to hold it alone waits for the other readers. NULL: nobody else has it. */
static const struct claim *holder_in_the_way(const struct lock *l, const struct session *s, struct span owner)
{
	return l->holder && claim_is_of(l->holder, s, owner) ? lock_next_holder(l, l->holder) : l->holder;
}

void reply_who_holds(const struct request_context *x, struct reply *r, struct report of)
{
	char who[WHO_MAX];

	reply_text(r, "holder", (struct span){who, session_who(of.session, who)});
	reply_ms(r, "held_ms", instant_diff(x->core->now, of.granted_at));
	reply_remark(r, of.remark);
}

static void reply_holder_here(struct request_context *x, struct reply *r, const struct lock *l, const struct claim *holder)
{
	reply_who_holds(x, r, report_of_claim(holder));
	if (l->share) {
		reply_mode(r, holder);
		reply_int(r, "holders", lock_holders(l));
	}
}

/* Adds what the stores have shown about the holder, and what its daemon has reported. */
static void reply_holder_there(struct request_context *x, struct reply *r, struct span name, const struct elsewhere *elsewhere)
{
	int64_t held_us = -1;
	const struct holder_text *c = remote_holder_card(x, name, elsewhere, &held_us);

	reply_elsewhere(r, elsewhere);
	if (c) {
		reply_remote_who(r, c);
		reply_ms(r, "held_ms", held_us);
		reply_remark(r, c->remark);
	} else {
		reply_elsewhere_held(x, r, elsewhere);
	}
	if (elsewhere->shared)
		reply_text(r, "mode", SPAN("shared"));
}

static void reply_elsewhere_holder(struct request_context *x, struct reply *r, struct span name, const struct elsewhere *elsewhere)
{
	if (!elsewhere->known)
		return;
	if (elsewhere->foreign) {
		reply_elsewhere(r, elsewhere);
		reply_int(r, "ttl_ms", elsewhere->pttl_ms);
	} else if (elsewhere->host[0]) {
		reply_holder_there(x, r, name, elsewhere);
	} else if (elsewhere->kept) {
		reply_elsewhere_held(x, r, elsewhere);
	}
}

static void busy_begin(struct request_context *x, struct reply *r, struct span tag, struct span name)
{
	metric_add(&x->core->metrics, METRIC_REFUSALS, 1);
	reply_begin(r, session_line(x->sessions), tag, "BUSY");
	reply_text(r, "name", name);
}

static void busy_end(struct request_context *x, struct session *s, struct reply *r, unsigned waiters, int64_t retry_us)
{
	reply_int(r, "waiters", waiters);
	if (retry_us >= 0)
		reply_ms(r, "retry_ms", retry_us + MSEC - 1);
	send_line(x, s, r);
}

static void reply_holder(struct request_context *x, struct reply *r, const struct lock *l, const struct session *s, struct span owner)
{
	const struct claim *holder = holder_in_the_way(l, s, owner);

	if (holder)
		reply_holder_here(x, r, l, holder);
	else
		reply_elsewhere_holder(x, r, lock_name(l), &l->contender->elsewhere);
}

void busy_send(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner)
{
	struct reply r;

	busy_begin(x, &r, tag, lock_name(l));
	reply_holder(x, &r, l, s, owner);
	busy_end(x, s, &r, l->contender->patient, lock_retry_us(&x->engine->table, l));
}

void busy_send_timeout(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner, struct span trace,
		       struct instant asked_at)
{
	struct reply r;

	metric_add(&x->core->metrics, METRIC_TIMEOUTS, 1);
	slow_wait(x, s, lock_name(l), trace, asked_at, "timeout");
	reply_begin(&r, session_line(x->sessions), tag, "TIMEOUT");
	reply_text(&r, "name", lock_name(l));
	reply_ms(&r, "waited_ms", instant_diff(x->core->now, asked_at));
	reply_holder(x, &r, l, s, owner);
	busy_end(x, s, &r, l->contender->patient, -1);
}
