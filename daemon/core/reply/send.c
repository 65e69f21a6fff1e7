/* SPDX-License-Identifier: BSD-2-Clause */
/* See send.h. */
#include "daemon/core/reply/send.h"

#include "daemon/core/engine/holding.h"
#include "daemon/core/member/health.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/jobs.h"
#include "daemon/core/session/semaphore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* One line of the log. names: how many names the request was for; 0: only this one. trace "": none. */
struct slow {
	const char *kind, *of, *field, *outcome;
	unsigned names;
	struct span trace;
};

static void slow_log(struct request_context *x, const struct slow *l, const struct session *s, struct span name, int64_t us)
{
	char who[WHO_MAX], names[24] = "";

	if (!core_may_log(x->core, BURST_SLOW))
		return;
	if (l->names > 0)
		snprintf(names, sizeof(names), " names=%u", l->names);
	core_log(x->core, LOG_NOTICE, "slow", "kind=%s %s=%s peer=%s session=%" PRIu64 " %s=%" PRId64 "%s outcome=%s%s%.*s", l->kind, l->of,
	         core_quoted(x->core, name), core_quoted(x->core, (struct span){who, session_who(s, who)}), s->serial, l->field, us / MSEC, names,
	         l->outcome, l->trace.n > 0 ? " trace=" : "", (int)l->trace.n, l->trace.p);
}

static void slow_wait_log(struct request_context *x, const struct slow *l, const struct session *s, struct span name, struct instant since)
{
	int64_t us = instant_diff(x->core->now, since);

	if (x->core->conf.slow_wait_us > 0 && us >= x->core->conf.slow_wait_us)
		slow_log(x, l, s, name, us);
}

void slow_wait(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome)
{
	slow_wait_log(x, &(struct slow){"wait", "name", "waited_ms", outcome, 0, trace}, s, name, since);
}

void slow_wait_of_group(struct request_context *x, const struct session *s, struct span name, unsigned names, struct span trace, struct instant since)
{
	slow_wait_log(x, &(struct slow){"wait", "name", "waited_ms", "granted", names, trace}, s, name, since);
}

void slow_wait_of_take(struct request_context *x, const struct session *s, struct span queue, struct instant since)
{
	slow_wait_log(x, &(struct slow){"wait", "queue", "waited_ms", "granted", 0, SPAN("")}, s, queue, since);
}

void slow_hold(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome)
{
	int64_t us = instant_diff(x->core->now, since);

	if (x->core->conf.slow_hold_us > 0 && us >= x->core->conf.slow_hold_us)
		slow_log(x, &(struct slow){"hold", "name", "held_ms", outcome, 0, trace}, s, name, us);
}

void send_line(struct request_context *x, struct session *s, struct reply *r)
{
	if (s->over || s->detached) {
		core_answers(x->core, x->core->serving);
		return;
	}
	session_send(x->sessions, s, r->start, reply_end(r));
}

/* --- errors --- */

void send_error(struct request_context *x, struct session *s, struct span tag, enum error code, const char *format, ...)
{
	char text[512];
	char *line = session_line(x->sessions);
	struct reply r;
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	reply_error(&r, line, tag, code, text);
	session_send(x->sessions, s, line, reply_end(&r));
}

void send_replaced(struct request_context *x, struct session *s, struct span tag)
{
	send_error(x, s, tag, ERROR_CANCELLED, "the same request was sent again, and waits instead of this one");
	session_answered(x->sessions, s, tag.n > 0);
}

const char *draining_text(const struct request_context *x)
{
	return x->engine->stopping ? "the daemon is stopping"
	                           : "the daemon drains: it grants nothing new, and stops when nobody holds anything; ask again when it is back";
}

void send_draining(struct request_context *x, struct session *s, struct span tag)
{
	send_error(x, s, tag, ERROR_DRAINING, "%s", draining_text(x));
}

void send_crowded(struct request_context *x, struct session *s, struct span tag)
{
	bool all = origins_are_crowded(&x->sessions->origins, x->core->conf.limits.waiting);
	unsigned times = all ? CROWD_OF_ALL : CROWD_OF_PEER;

	send_error(x, s, tag, ERROR_LIMIT, "%s may have at most %" PRIu64 " requests that wait, and holds beside others (%u times limits.waiting)",
	           all ? "all sessions together" : "the sessions of one peer", times * x->core->conf.limits.waiting, times);
}

void send_adopting(struct request_context *x, struct session *s)
{
	send_error(x, s, x->request.tag, ERROR_QUORUM,
	           "the daemon was restarted, and fewer than %u of %u stores have confirmed the lock since: ask again in a moment",
	           quorum_of(x->core->conf.nodes), x->core->conf.nodes);
}

void send_revoked(struct request_context *x, struct session *s, struct span tag)
{
	metric_add(&x->core->metrics, METRIC_DENIED, 1);
	send_error(x, s, tag, ERROR_DENIED, "the waiting request was withdrawn: the rules now deny this peer the right 'lock' here");
}

void reply_drain_end(const struct request_context *x, struct reply *r)
{
	if (x->engine->stopping || x->drain.over)
		reply_int(r, "in_ms", 0);
	else if (timer_is_set(&x->drain.timer))
		reply_ms(r, "in_ms", instant_diff(x->drain.timer.at, x->core->now));
	else
		reply_int(r, "in_ms", -1);
}

void send_deadlock(struct request_context *x, struct session *s, struct span tag, struct span cycle)
{
	struct reply r;

	metric_add(&x->core->metrics, METRIC_DEADLOCKS, 1);
	reply_begin(&r, session_line(x->sessions), tag, "ERR DEADLOCK");
	reply_text(&r, "cycle", cycle);
	send_line(x, s, &r);
}

/* This line itself was answered already. */
static void send_hangup(struct request_context *x, struct session *s)
{
	char text[64], *line = session_line(x->sessions);
	struct reply r;

	snprintf(text, sizeof(text), "mistakes=%" PRIu64 " in a row: hanging up", x->core->conf.limits.mistakes);
	reply_error(&r, line, SPAN(""), ERROR_LIMIT, text);
	session_send_raw(x->sessions, s, line, reply_end(&r));
}

/* Counts one more mistake in a row. After too many the session is told so, and its connection is closed. */
static void count_invalid(struct request_context *x, struct session *s)
{
	metric_add(&x->core->metrics, METRIC_MISTAKES, 1);
	if (++s->mistakes < x->core->conf.limits.mistakes || s->over)
		return;
	send_hangup(x, s);
	session_ended(x->sessions, s, "mistakes");
	session_hang_up(x->sessions, s, "mistakes");
	s->over = true;
}

void send_invalid(struct request_context *x, struct session *s, enum error code, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	send_error(x, s, x->request.tag, code, "%s", text);
	count_invalid(x, s);
}

/* --- what a session has --- */

void reply_grant(struct request_context *x, struct reply *r, struct claim *holder)
{
	reply_text(r, "name", lock_name(holder->lock));
	reply_int(r, "fence", holder->token);
	reply_ms(r, "valid_ms", lock_valid_us(&x->engine->table, holder->lock));
	holder->here = true;
}

void send_granted(struct request_context *x, struct claim *holder, struct span tag, unsigned count)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_grant(x, &r, holder);
	reply_ms(&r, "ttl_ms", holder->lock->lease.ttl_us);
	reply_int(&r, "count", count);
	reply_mode(&r, holder);
	send_line(x, holder->session, &r);
}

struct report report_of_claim(const struct claim *c)
{
	return (struct report){.session = c->session,
	                       .name = lock_name(c->lock),
	                       .owner = claim_owner(c),
	                       .remark = claim_remark(c),
	                       .fence = c->token,
	                       .waiters = c->lock->contender->patient,
	                       .shared = c->shared,
	                       .asked_at = c->asking ? c->asking->asked_at : INSTANT_PAST,
	                       .granted_at = c->granted_at,
	                       .loss = c->loss};
}

void report_log_lost(struct request_context *x, struct report of)
{
	char who[WHO_MAX];

	if (core_may_log(x->core, BURST_LOST))
		core_log(x->core, LOG_WARN, "lost", "peer=%s session=%" PRIu64 " name=%s fence=%" PRId64 " reason=%s",
		         core_quoted(x->core, (struct span){who, session_who(of.session, who)}), of.session->serial, core_quoted(x->core, of.name),
		         of.fence, loss_word(of.loss));
}

void push(struct request_context *x, struct report of, const char *word, const char *field, int64_t value)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), SPAN(""), word);
	reply_text(&r, "name", of.name);
	if (of.limit > 0)
		reply_int(&r, "permit", of.permit);
	reply_int(&r, "fence", of.fence);
	if (field)
		reply_int(&r, field, value > 0 ? value : 0);
	else
		reply_text(&r, "reason", span_of(loss_word(of.loss)));
	reply_owner(&r, of.owner);
	send_line(x, of.session, &r);
}

void send_lost(struct request_context *x, struct claim *c)
{
	c->not_notified = false;
	push(x, report_of_claim(c), "! LOST", NULL, 0);
}

void claim_forget_loss(struct request_context *x, const struct claim *c)
{
	struct claim *loss = lock_loss_of(c->lock, c->session, claim_owner(c));

	if (!loss)
		return;
	if (loss->not_notified)
		send_lost(x, loss);
	TAILQ_REMOVE(&loss->session->claims, loss, in_session);
	loss->session->held--;
	hold_forget(x->engine, loss);
}

void claim_row_notified(struct request_context *x, struct claim *c)
{
	if (!c->not_notified)
		return;
	c->not_notified = false;
	heap_cancel(&x->core->timers, &c->timer);
	record_held(x, c);
}

void claim_notified(struct request_context *x, struct claim *c)
{
	if (!c->not_notified)
		return;
	claim_forget_loss(x, c);
	claim_row_notified(x, c);
}

struct instant resume_repeat_until(const struct request_context *x, const struct session *s)
{
	int64_t lease = x->core->conf.lease_us;

	return instant_add(x->core->now, s->grace_us > lease ? s->grace_us : lease);
}

void claim_bound(struct request_context *x, struct claim *c, struct instant until)
{
	if (!timer_is_set(&c->timer) || instant_before(until, c->timer.at))
		heap_set(&x->core->timers, &c->timer, until);
}

/* Too few stores are usable, or the usable ones were busy or refused. It is not known here how many have answered. */
static void deliver_no_quorum(struct request_context *x, struct session *s, struct span tag, enum refusal why)
{
	unsigned nodes = x->core->conf.nodes, quorum = quorum_of(nodes), usable = members_serving(&x->engine->members);
	int64_t pending = members_pending_us(&x->engine->members);
	char retry[96] = "", stores[400] = "";

	(usable < quorum ? health_show_missing : health_show_serving)(&x->engine->members, stores, sizeof(stores));
	if (pending >= 0)
		snprintf(retry, sizeof(retry), "; enough are back in %" PRId64 " ms retry_ms=%" PRId64, pending / MSEC + 1, pending / MSEC + 1);
	if (usable < quorum)
		send_error(x, s, tag, ERROR_QUORUM, "%u of %u stores can be used, %u are needed: %s%s", usable, nodes, quorum, stores, retry);
	else if (why == REFUSED_NOT_ADMITTED)
		send_error(x, s, tag, ERROR_QUORUM,
		           "%u of %u stores can be used, but are too busy: the request was not sent to them in time; wait longer, or send fewer at a time",
		           usable, nodes);
	else if (why == REFUSED_NOT_EXTENDED)
		send_error(x, s, tag, ERROR_QUORUM,
			   "%u of %u stores can be used, but are too busy: the lock is still held, but was not extended in time; "
			   "ask again, or send fewer at a time", usable, nodes);
	else
		send_error(x, s, tag, ERROR_QUORUM, "%u of %u stores can be used, but fewer than %u complied in time%s", usable, nodes, quorum,
			   stores[0] ? stores : "; LIST nodes shows them");
}

void deliver_refusal(struct request_context *x, struct session *s, struct span tag, enum refusal why)
{
	switch (why) {
	case REFUSED_QUORUM:
	case REFUSED_NOT_ADMITTED:
	case REFUSED_NOT_EXTENDED:
		deliver_no_quorum(x, s, tag, why);
		break;
	case REFUSED_KIND:
		send_error(x, s, tag, ERROR_KIND,
			   "the stores have a key of another type under this name; redlockd leaves it alone: take another name, or remove that key");
		break;
	case REFUSED_IN_USE:
		send_error(x, s, tag, ERROR_KIND, "the name is in use by a semaphore: take another name, or ask when nobody has a permit of it");
		break;
	case REFUSED_CANCELLED:
		send_error(x, s, tag, ERROR_CANCELLED, "the waiting request was withdrawn");
		break;
	case REFUSED_DRAINING:
		send_draining(x, s, tag);
		break;
	case REFUSED_DENIED:
		send_revoked(x, s, tag);
		break;
	case REFUSED_CROWD:
		send_crowded(x, s, tag);
		break;
	case REFUSED_SLOTS:
		send_error(x, s, tag, ERROR_LIMIT, "a session may be the first in line for at most %d slots of semaphores: wait for some in another session",
		           SLOTS_OF_SESSION);
		break;
	case REFUSED_COUNT:
		send_error(x, s, tag, ERROR_LIMIT, "an owner holds a lock at most %u times at once", HOLDS_MOST);
		break;
	case REFUSED_SHARED:
		send_error(x, s, tag, ERROR_ARG, "this owner holds it shared: UNLOCK it, then LOCK it exclusively");
		break;
	case REFUSED_LOST:
		send_error(x, s, tag, ERROR_LOST, "the stores say that this session did not hold the lock any more");
		break;
	default:
		send_error(x, s, tag, ERROR_INTERNAL, "refusal %d", (int)why);
		break;
	}
}

enum refusal withdrawn_why(const struct request_context *x, bool denied)
{
	return denied ? REFUSED_DENIED : x->engine->draining ? REFUSED_DRAINING : REFUSED_CANCELLED;
}

enum result refusal_result(enum refusal why)
{
	return why == REFUSED_BUSY ? RESULT_BUSY : why == REFUSED_TIMEOUT ? RESULT_TIMEOUT : RESULT_ERROR;
}

bool peer_within_limit(struct request_context *x, struct session *s)
{
	uint64_t waiting = x->core->conf.limits.waiting;
	unsigned times = origin_asks_enough(s->origin, waiting);

	if (times == 0)
		return true;
	send_error(x, s, x->request.tag, ERROR_LIMIT, "%s may have at most %" PRIu64 " requests in flight (%u times limits.waiting)",
	           times == CROWD_OF_ALL ? "all sessions together" : "the sessions of one peer", times * waiting, times);
	return false;
}

bool pendings_within_limit(struct request_context *x, struct session *s)
{
	uint64_t most = under_way_most(x->core, PENDINGS_MOST), n = 0;
	const struct pending *p;

	TAILQ_FOREACH(p, &s->pendings, in_session)
		n += 1 + p->bytes / PENDING_BYTES;
	if (n < most)
		return peer_within_limit(x, s);
	send_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a session may have at most %" PRIu64 " requests in flight at the stores (limits.waiting, and at most %d; 8 KiB count as one)",
	           most, PENDINGS_MOST);
	return false;
}

struct pending *pending_uncounted(struct request_context *x, struct session *s, struct lock *l)
{
	struct pending *p = pool_get(&x->engine->table.pendings);

	p->session = s;
	p->lock = l;
	p->verb = x->request.verb;
	request_keep_tag(&x->request, p->tag);
	TAILQ_INSERT_TAIL(&s->pendings, p, in_session);
	s->busy |= x->request.tag.n == 0;
	return p;
}

struct pending *pending_of_request(struct request_context *x, struct session *s, struct lock *l)
{
	struct pending *p = pending_uncounted(x, s, l);

	p->origin = s->origin;
	origin_asks(p->origin);
	return p;
}

void pending_answered(struct request_context *x, struct pending *p)
{
	struct session *s = p->session;

	if (s) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		session_answered(x->sessions, s, p->tag[0] != '\0');
	}
	pending_free(&x->engine->table.pendings, p);
}

bool refuse_name(struct request_context *x, struct session *s)
{
	send_invalid(x, s, ERROR_LIMIT, "a name may have at most %" PRIu64 " bytes (limits.name)", x->core->conf.limits.name);
	return false;
}

bool refuse_shared_terms(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	bool once = !request_is_renewed(q), delays = request_has(q, FIELD_DELAY) && q->field[FIELD_DELAY].number > 0;

	if (!once && !delays)
		return true;
	send_invalid(x, s, ERROR_ARG, "%s is for exclusive locks: the daemon renews a shared lock until it is unlocked, and then it is free at once",
	             once ? "renew=no" : "delay=");
	return false;
}

bool refuse_bound(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what)
{
	send_invalid(x, s, ERROR_LIMIT, "%s may be at most %" PRId64 "ms (%s)", field_table[field].word, most / MSEC, what);
	return false;
}

/* Figures are in thousandths of a renewal a second. */

#define LONG_US      (10 * SEC)
#define AGAIN_US     (100 * MSEC)
#define COUNTED_MOST 4096 /* leases that each sum counts anew */

#define LEASES_OF_PERMIT 2 /* the mark and one slot, in whatever lines it waits */
#define LEASES_OF_TAKE   2 /* the job and its lock */

/* A loss that is known only from the journal has no ttl. */
static int64_t milli_of(int64_t ttl_us)
{
	return ttl_us > 0 && ttl_us < LONG_US ? 3 * 1000 * SEC / ttl_us : 0;
}

/*
 * What the session has, and what its requests may bring. repeatable: only the requests that its client may repeat, because their answers were lost with the
 * connection.
 */
static int64_t session_milli(const struct session *s, bool repeatable)
{
	int64_t sum = 0;
	const struct claim *c;
	const struct permit *p;
	const struct group *g;
	const struct take *take;
	const struct job *job;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if ((c->not_notified || !repeatable) && c->renew && c->state != CLAIM_LOST)
			sum += milli_of(c->ttl_us);
	PERMITS_FOREACH(p, s)
		if ((p->bid.not_notified || !repeatable) && p->state != PERMIT_LOST)
			sum += LEASES_OF_PERMIT * milli_of(p->bid.ttl_us);
	GROUPS_FOREACH(g, s)
		if ((g->bid.not_notified || !repeatable) && g->renew && !g->take)
			sum += (g->any ? 1 : g->parts) * milli_of(g->bid.ttl_us);
	LIST_FOREACH(job, &s->jobs, in_session)
		if (!repeatable && job->state != JOB_LOST)
			sum += milli_of(job->ttl_us);
	for (take = take_first(s); take; take = take_next(take))
		if (!repeatable)
			sum += LEASES_OF_TAKE * milli_of(take->bid.ttl_us);
	return sum;
}

static int64_t leases_asked_for(const struct request *q)
{
	switch (q->verb) {
	case VERB_LOCKALL:
		return q->words;
	case VERB_ACQUIRE:
		return LEASES_OF_PERMIT;
	case VERB_TAKE:
		return LEASES_OF_TAKE;
	case VERB_EXTEND:
		return 0; /* it has that lease already, which counts from the next request on */
	default:
		return 1;
	}
}

/* A client of a resumed session may repeat its requests. So much is no more than it has. */
static int64_t milli_asked_for(const struct session *s, int64_t leases, int64_t ttl_us)
{
	int64_t more = leases * milli_of(ttl_us), again = s->resumed ? session_milli(s, true) : 0;

	return more > again ? more - again : 0;
}

static void session_set_renewals(struct request_context *x, struct session *s, int64_t milli)
{
	s->renewals = milli;
	if (milli > 0 && !s->in_short.le_prev) {
		LIST_INSERT_HEAD(&x->renewals.sessions, s, in_short);
	} else if (milli == 0 && s->in_short.le_prev) {
		LIST_REMOVE(s, in_short);
		s->in_short.le_prev = NULL;
	}
}

/* Counts some sessions in each sum, so that each has its turn: they may have lost or released what was counted last. */
static void count_anew(struct request_context *x)
{
	struct session *s, *next;
	uint64_t counted = 0;

	for (s = LIST_FIRST(&x->renewals.sessions); s && counted < COUNTED_MOST; s = next) {
		next = LIST_NEXT(s, in_short);
		if (s->recounted == x->renewals.recounts)
			continue;
		s->recounted = x->renewals.recounts;
		counted += 1 + s->held + s->waiting;
		session_set_renewals(x, s, session_milli(s, false));
	}
	if (!s)
		x->renewals.recounts++;
}

static struct renewals_sum *sum_of(struct request_context *x, uint64_t origin)
{
	struct renewals_sum *sum = &x->renewals.sum[origin % RENEWALS_SUMS];
	const struct session *s;

	if (sum->origin == origin && instant_before(x->core->now, sum->until))
		return sum;
	count_anew(x);
	*sum = (struct renewals_sum){.origin = origin, .until = instant_add(x->core->now, AGAIN_US)};
	LIST_FOREACH(s, &x->renewals.sessions, in_short)
		if (origin == 0 || origin_id(s->origin) == origin)
			sum->milli += s->renewals;
	return sum;
}

static bool refuse(struct request_context *x, struct session *s, int64_t ttl_us, int64_t leases, const char *whose, int64_t most, int64_t used)
{
	int64_t left = most * 1000 - used, right_us = left > 0 ? 3 * 1000 * SEC * leases / left + MSEC : LONG_US;

	send_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a lease of %" PRId64 "ms is renewed every %" PRId64 "ms, and the leases below %dms of %s may have at most %" PRId64
	           " renewals a second (limits.renewals): a ttl of %" PRId64 "ms or more is right now",
	           ttl_us / MSEC, ttl_us / 3 / MSEC, (int)(LONG_US / MSEC), whose, most,
	           (right_us < LONG_US ? right_us : LONG_US) / MSEC);
	return false;
}

static bool renewals_allow(struct request_context *x, struct session *s, int64_t ttl_us)
{
	int64_t all = (int64_t)x->core->conf.limits.renewals, leases = leases_asked_for(&x->request), before, own, more;
	struct renewals_sum *of_all, *of_peer;

	if (all == 0 || !request_is_renewed(&x->request))
		return true;
	more = milli_asked_for(s, leases, ttl_us);
	own = session_milli(s, false);
	of_all = sum_of(x, 0);
	of_peer = sum_of(x, origin_id(s->origin));
	before = s->renewals;
	session_set_renewals(x, s, own);
	if (own + more > all / 20 * 1000)
		return refuse(x, s, ttl_us, leases, "one session", all / 20, own);
	if (!session_is_owner(x->core, s) && of_peer->milli + more > all / 2 * 1000)
		return refuse(x, s, ttl_us, leases, "the sessions of one peer", all / 2, of_peer->milli);
	if (of_all->milli + more > all * 1000)
		return refuse(x, s, ttl_us, leases, "all sessions", all, of_all->milli);
	session_set_renewals(x, s, own + more);
	of_all->milli += own + more - before;
	of_peer->milli += own + more - before;
	return true;
}

bool ttl_is_allowed(struct request_context *x, struct session *s)
{
	const struct core_conf *conf = &x->core->conf;
	int64_t ttl = request_has(&x->request, FIELD_TTL) ? x->request.field[FIELD_TTL].number : conf->lease_us;

	if (!request_has(&x->request, FIELD_TTL) || (ttl >= conf->min_lease_us && ttl <= conf->max_lease_us))
		return ttl >= LONG_US || renewals_allow(x, s, ttl);
	send_invalid(x, s, ERROR_LIMIT, "ttl must be from %" PRId64 "ms (min_lease) to %" PRId64 "ms (max_lease)",
	             conf->min_lease_us / MSEC, conf->max_lease_us / MSEC);
	return false;
}
