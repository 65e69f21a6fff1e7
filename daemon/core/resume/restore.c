/* SPDX-License-Identifier: BSD-2-Clause */
/* See restore.h. */
#include "daemon/core/resume/restore.h"

#include "daemon/core/engine/adopt.h"
#include "daemon/core/engine/adoption.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/event/journal.h"
#include "daemon/core/job/runner.h"
#include "daemon/core/reply/remember.h"
#include "daemon/core/semaphore/recall.h"

#include <errno.h>

static void restore_drop(struct commander *x, struct claim *c)
{
	if (c->session->of_permit) {
		recall_drop(x, c);
		return;
	}
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	c->session->held--;
	adopt_drop(x->engine, c);
}

static void restore_end_session(struct commander *x, struct session *s)
{
	struct claim *c;

	while ((c = TAILQ_FIRST(&s->claims)))
		restore_drop(x, c);
	jobs_end(x, s, false);
	recall_drop_all(x, s);
	session_close(x->sessions, s);
}

/* Whether the record is of one more reader of the lease that earlier records named. */
static bool restore_continues(const struct lock *l, const struct journal_record *r)
{
	return (r->renew & JOURNAL_SHARED) && l->share && adoption_is_of(&l->lease, r->value);
}

/*
 * Drops what this record supersedes: other holders that an earlier record named, and what this owner held or had lost before. A loss stays beside a turn that
 * its client was not told of, and survives that turn.
 */
static void restore_clear(struct commander *x, const struct session *s, const struct journal_record *r)
{
	bool holds = r->kind == JOURNAL_HELD || r->kind == JOURNAL_ADOPTING;
	struct lock *l = lock_find_text(&x->engine->table, r->name);
	struct claim *loss = l ? lock_loss_of(l, s, r->owner) : NULL;
	struct claim *own;

	if (!l)
		return;
	own = lock_holder_of(l, s, r->owner);
	l->name.refs++;
	if (loss && (holds ? r->told : r->kind == JOURNAL_LOST || !own))
		restore_drop(x, loss);
	if (own)
		restore_drop(x, own);
	while (holds && l->holder && !restore_continues(l, r))
		restore_drop(x, l->holder);
	l->name.refs--;
	lock_drop_if_unused(&x->engine->table, l);
}

static int64_t at_most(int64_t us, int64_t most_us)
{
	return us < most_us ? us : most_us;
}

/* Caps the lease and the lock-delay at what may be asked for now: quarantines after a crash of this run are reckoned with that. */
static struct claim *restore_claim(struct commander *x, struct session *s, const struct journal_record *r)
{
	struct claim *c = claim_new(&x->engine->table);

	c->session = s;
	claim_set_texts(c, r->owner, r->note);
	c->token = r->fence;
	c->count = (unsigned)r->count;
	c->renew = r->renew & JOURNAL_RENEWED;
	c->shared = r->renew & JOURNAL_SHARED;
	c->ttl_us = at_most(r->ttl_us, x->core->conf.max_lease_us);
	c->delay_us = at_most(r->delay_us, x->core->conf.max_delay_us);
	c->granted_at = (struct instant){r->granted_at_us};
	TAILQ_INSERT_TAIL(&s->claims, c, in_session);
	s->held++;
	return c;
}

static bool secret_is_sound(struct span secret)
{
	for (size_t i = 0; i < secret.n; i++)
		if (!secret.p[i] || !strchr("0123456789abcdef", secret.p[i]))
			return false;
	return true;
}

/* If no grace is allowed any more, the session can be resumed within the time that restore_end() sets, but outlives no further connection. */
static int restore_session(struct commander *x, struct session *s, const struct journal_record *r)
{
	int64_t most_us = x->core->conf.max_grace_us > 0 ? x->core->conf.max_grace_us : 1;

	if (!secret_is_sound(r->secret))
		return -EBADMSG;
	if (!s)
		s = session_restore(x->sessions, (uint64_t)r->session);
	memcpy(s->lasting->secret, r->secret.p, r->secret.n);
	session_set_label(s, r->label);
	s->heartbeat_us = r->heartbeat_us;
	s->grace_us = at_most(r->grace_us, most_us);
	return 0;
}

/* Earlier versions let a reader have an end or a lock-delay of its own. Such a hold is not adopted: it ends with what is left of its lease. */
static bool is_reader_with_terms(const struct journal_record *r)
{
	return (r->renew & JOURNAL_SHARED) && (!(r->renew & JOURNAL_RENEWED) || r->delay_us > 0);
}

/* A journal of an earlier version names no daemon: the one that has written the last value goes on. */
static void restore_note_daemon(struct commander *x, struct span value)
{
	const char *colon = memchr(value.p, ':', value.n);

	if (x->core->run == 0 && colon && colon > value.p && colon - value.p < DAEMON_ID_MAX)
		core_go_on_as(x->core, (struct span){value.p, (size_t)(colon - value.p)});
}

static int restore_held(struct commander *x, struct session *s, const struct journal_record *r)
{
	struct prior_lease from = {.name = r->name, .value = r->value, .ttl_us = r->ttl_us, .deadline = {r->deadline_us}};
	struct claim *c;

	restore_note_daemon(x, r->value);
	restore_clear(x, s, r);
	if (is_reader_with_terms(r))
		return 0;
	if (r->renew & JOURNAL_PERMIT)
		return recall_seat(x, s, r, &from);
	c = restore_claim(x, s, r);
	c->not_notified = !r->told;
	lock_find_or_add_text(&x->engine->table, r->name)->lease.limit = 0;
	adopt_expect(x->engine, c, &from);
	return 0;
}

static int restore_daemon(struct commander *x, const struct journal_record *r)
{
	if (r->daemon.n >= DAEMON_ID_MAX || memchr(r->daemon.p, ':', r->daemon.n))
		return -EBADMSG;
	core_go_on_as(x->core, r->daemon);
	x->core->run = (uint64_t)r->run + (r->run < JOURNAL_RUN_MOST);
	return 0;
}

static int restore_lost(struct commander *x, struct session *s, const struct journal_record *r)
{
	enum loss why;
	struct claim *c;

	if (!loss_find(r->reason, &why))
		return -EBADMSG;
	if (recall_is_loss(r))
		return recall_loss(x, s, r, why);
	restore_clear(x, s, r);
	c = restore_claim(x, s, r);
	c->not_notified = true; /* whether it was told is not known: it is told again */
	hold_recall_loss(x->engine, c, r->name, why);
	return 0;
}

/* Notes whether the LOCKALL whose records are being read has more of them. */
static void restore_note_torn(struct commander *x, struct session *s, const struct journal_record *r)
{
	bool more = (r->kind == JOURNAL_HELD || r->kind == JOURNAL_ADOPTING) && (r->renew & JOURNAL_MORE) && !is_reader_with_terms(r);

	if (r->kind == JOURNAL_STAYS || r->kind == JOURNAL_KEPT)
		return;
	x->torn_count = !more ? 0 : s == x->torn ? x->torn_count + 1 : 1;
	x->torn = more ? s : NULL;
}

/* The file ends before the last record of a LOCKALL, so nobody was told of what it took. */
static void restore_drop_torn(struct commander *x)
{
	for (; x->torn && x->torn_count > 0; x->torn_count--)
		restore_drop(x, TAILQ_LAST(&x->torn->claims, claims));
	x->torn = NULL;
}

/* A session that is not known yet is told whole further on, or is over by then: see journal.h. */
static int restore_one(struct commander *x, const struct journal_record *r)
{
	struct session *s = session_of_serial(x->sessions, (uint64_t)r->session);

	switch (r->kind) {
	case JOURNAL_SESSION:
		return restore_session(x, s, r);
	case JOURNAL_OVER:
		if (s)
			restore_end_session(x, s);
		return 0;
	case JOURNAL_FREED:
		if (s && !recall_freed(x, s, r))
			restore_clear(x, s, r);
		return 0;
	case JOURNAL_HELD:
	case JOURNAL_ADOPTING:
		return s ? restore_held(x, s, r) : 0;
	case JOURNAL_DAEMON:
		return restore_daemon(x, r);
	case JOURNAL_JOB:
		restore_note_daemon(x, r->value);
		return !s || job_restore(x, s, r) ? 0 : -EBADMSG;
	case JOURNAL_JOB_LOST:
		return !s || job_restore_lost(x, s, r) ? 0 : -EBADMSG;
	case JOURNAL_JOB_OVER:
		if (s)
			job_restore_over(x, s, r);
		return 0;
	case JOURNAL_JOB_KNOWN:
		if (s)
			job_restore_known(s, r);
		return 0;
	case JOURNAL_JOB_ENDING:
		if (s)
			job_restore_ending(s, r);
		return 0;
	case JOURNAL_STAYS:
	case JOURNAL_KEPT:
		return 0;
	case JOURNAL_LOST:
		return s ? restore_lost(x, s, r) : 0;
	}
	return -EBADMSG;
}

int restore_record(struct commander *x, struct span record)
{
	struct journal_record r;
	struct session *s;
	int decoded = x->distrusts ? -EBADMSG : journal_decode(record, &r);

	if (decoded == JOURNAL_UNKNOWN)
		return 0;
	if (decoded == 0 && restore_one(x, &r) == 0) {
		restore_note_torn(x, session_of_serial(x->sessions, (uint64_t)r.session), &r);
		return 0;
	}
	x->distrusts = true;
	x->torn = NULL;
	while ((s = TAILQ_FIRST(&x->sessions->detached)))
		restore_end_session(x, s);
	return -EBADMSG;
}

/* A run makes fewer numbers of values and of orders, so none is used again with the same id. */
static void restore_number(struct commander *x)
{
	if (x->core->run == 0)
		x->core->run = 1;
	x->orders = x->engine->table.values = x->core->run << 40;
	if (!TAILQ_EMPTY(&x->sessions->detached))
		remember_daemon(x);
}

void restore_end(struct commander *x)
{
	int64_t least = x->core->conf.lease_us;
	struct session *s;
	struct claim *c;

	restore_drop_torn(x);
	restore_number(x);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached) {
		heap_set(&x->core->timers, &s->lasting->grace, instant_add(x->core->now, s->grace_us > least ? s->grace_us : least));
		TAILQ_FOREACH(c, &s->claims, in_session) {
			if (c->state == CLAIM_HELD)
				adopt_start(x->engine, &c->lock->lease);
		}
		jobs_adopt(x, s);
		recall_end(x, s);
		session_note_vacant(x->sessions, s);
	}
}
