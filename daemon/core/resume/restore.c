/* SPDX-License-Identifier: BSD-2-Clause */
/* See resume.h. */
#include "daemon/core/resume/resume.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/journal.h"
#include "daemon/core/job/job.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/member/membership.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/semaphore/permit.h"
#include "daemon/core/session/client.h"

#include <errno.h>

#define HANDED_US  SEC /* what waits may wait for the stores this long at most */
#define LOOK_US    MSEC            /* between two checks of the stores */
#define SLOTS_MOST (UINT32_C(1) << 24) /* numbers of connections */

static void restore_drop(struct request_context *x, struct claim *c)
{
	if (c->session->of_permit) {
		permit_restore_drop(x, c);
		return;
	}
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	c->session->held--;
	adopt_drop(x->engine, c);
}

static void restore_end_session(struct request_context *x, struct session *s)
{
	struct claim *c;

	while ((c = TAILQ_FIRST(&s->claims)))
		restore_drop(x, c);
	jobs_end(x, s, false);
	permit_restore_drop_all(x, s);
	session_close(x->sessions, s);
}

/* Whether the record is of another reader of the same lease as earlier records. */
static bool restore_continues(const struct lock *l, const struct journal_record *r)
{
	return (r->renew & JOURNAL_SHARED) && l->share && adoption_is_of(&l->lease, r->value);
}

/*
 * Drops what this record supersedes: other holders from earlier records, and what this owner held or had lost before. A loss stays next to a grant of which its
 * client was not told, and outlasts that grant.
 */
static void restore_clear(struct request_context *x, const struct session *s, const struct journal_record *r)
{
	bool holds = r->kind == JOURNAL_HELD || r->kind == JOURNAL_ADOPTING;
	struct lock *l = lock_find_text(&x->engine->table, r->name);
	struct claim *loss = l ? lock_loss_of(l, s, r->owner) : NULL;
	struct claim *own;

	if (!l)
		return;
	own = lock_holder_of(l, s, r->owner);
	l->name.refs++;
	if (loss && (holds ? r->notified : r->kind == JOURNAL_LOST || !own))
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

/* Limits the lease and the lock-delay to what may be asked for now, because quarantines after a crash of this run assume that. */
static struct claim *restore_claim(struct request_context *x, struct session *s, const struct journal_record *r)
{
	struct claim *c = claim_new(&x->engine->table);

	c->session = s;
	claim_set_texts(c, r->owner, remark_read(r->note, r->trace));
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

/* If grace is no longer allowed, the session can still be resumed within the time that restore_end() sets. But it does not outlive that connection. */
static int restore_session(struct request_context *x, struct session *s, const struct journal_record *r)
{
	int64_t most_us = x->core->conf.max_grace_us > 0 ? x->core->conf.max_grace_us : MSEC;

	bool silent = x->handed && r->secret.n == 0; /* it has never asked for a secret */

	if (!secret_is_sound(r->secret) || (r->secret.n != 32 && !silent))
		return -EBADMSG;
	if (!s)
		s = session_restore(x->sessions, (uint64_t)r->session);
	if (!silent)
		memcpy(s->lasting->secret, r->secret.p, r->secret.n);
	session_set_label(s, r->label);
	s->heartbeat_us = r->heartbeat_us;
	s->grace_us = r->grace_us == JOURNAL_NO_GRACE ? 0 : at_most(r->grace_us, most_us);
	return 0;
}

/* Earlier versions allowed a fixed end or a lock-delay for a reader. Such a hold is not adopted: it ends with its lease. */
static bool is_reader_with_terms(const struct journal_record *r)
{
	return (r->renew & JOURNAL_SHARED) && (!(r->renew & JOURNAL_RENEWED) || r->delay_us > 0);
}

/* A journal of an earlier version does not name the daemon. It is the one that wrote the last value, and goes on as such. */
static void restore_note_daemon(struct request_context *x, struct span value)
{
	const char *colon = memchr(value.p, ':', value.n);

	if (x->core->run == 0 && colon && colon > value.p && colon - value.p < DAEMON_ID_MAX)
		core_go_on_as(x->core, (struct span){value.p, (size_t)(colon - value.p)});
}

static int restore_held(struct request_context *x, struct session *s, const struct journal_record *r)
{
	struct prior_lease from = {.name = r->name, .value = r->value, .ttl_us = r->ttl_us, .deadline = {r->deadline_us}, .end = INSTANT_NEVER};
	struct claim *c;

	if (x->handed)
		from.end.us = r->until_us;
	if (x->handed && x->handed->same_configuration) {
		from.votes = r->votes;
		from.gaps = nodeset_and((struct nodeset){(uint16_t)r->placed}, nodeset_all(x->core->conf.nodes));
	}
	restore_note_daemon(x, r->value);
	restore_clear(x, s, r);
	if (is_reader_with_terms(r))
		return 0;
	if (r->renew & JOURNAL_PERMIT)
		return permit_restore_seat(x, s, r, &from);
	c = restore_claim(x, s, r);
	c->not_notified = !r->notified;
	c->risked = r->flags & JOURNAL_RISK;
	lock_find_or_add_text(&x->engine->table, r->name)->lease.limit = 0;
	adopt_expect(x->engine, c, &from);
	return 0;
}

static int restore_daemon(struct request_context *x, const struct journal_record *r)
{
	if (r->daemon.n >= DAEMON_ID_MAX || memchr(r->daemon.p, ':', r->daemon.n))
		return -EBADMSG;
	core_go_on_as(x->core, r->daemon);
	x->core->run = (uint64_t)r->run + (r->run < JOURNAL_RUN_MOST);
	if (r->stores.n == 0)
		return 0;
	if (x->handed || !TAILQ_EMPTY(&x->sessions->detached))
		return -EBADMSG;
	x->handed = mem_alloc(sizeof(*x->handed));
	x->handed->timer.kind = TIMER_HANDED;
	x->handed->same_stores = span_equal(r->stores, hand_over_stores(x->core));
	return 0;
}

/* Records of other stores, or of another configuration, are skipped. */
static int restore_stores(struct request_context *x, const struct journal_record *r)
{
	if (!x->handed)
		return -EBADMSG;
	x->handed->same_configuration = x->handed->same_stores && members_restore(&x->engine->members, r);
	return 0;
}

static int restore_store(struct request_context *x, const struct journal_record *r)
{
	if (!x->handed)
		return -EBADMSG;
	return !x->handed->same_configuration || member_restore(&x->engine->members, r) ? 0 : -EBADMSG;
}

static void peer_read(const struct journal_record *r, struct peer *ret_peer)
{
	*ret_peer = (struct peer){.is_unix = r->flags & JOURNAL_IS_UNIX,
	                          .is_local = r->flags & JOURNAL_IS_LOCAL,
	                          .is_admin = r->flags & JOURNAL_IS_ADMIN,
	                          .pid = r->pid,
	                          .uid = r->uid,
	                          .groups_n = (unsigned)(r->groups.n / sizeof(uint32_t))};
	core_keep(ret_peer->address, sizeof(ret_peer->address), r->address);
}

static bool connection_is_free(struct request_context *x, uint64_t id)
{
	uint32_t slot = (uint32_t)id;

	return slot < SLOTS_MOST && (slot >= x->sessions->slots || !x->sessions->slot[slot]);
}

/* The session has its connection again. */
static int restore_client(struct request_context *x, struct session *from, const struct journal_record *r)
{
	uint32_t *groups = (uint32_t *)(void *)arena_copy(&x->core->out->arena, r->groups.p, r->groups.n);
	struct session *s;
	struct peer peer;

	if (!x->handed || !from || !from->detached || !connection_is_free(x, (uint64_t)r->connection) || r->line.n > TAG_MAX)
		return -EBADMSG;
	s = session_open(x->sessions, (uint64_t)r->connection, false);
	peer_read(r, &peer);
	peer.groups = groups;
	session_set_peer(x->sessions, s, &peer);
	if (r->user.n > 0)
		session_identity(s)->user = mem_copy(r->user.p, r->user.n);
	resume_return(x, s, from);
	s->opened_at.us = r->since_us;
	s->proven = r->flags & JOURNAL_PROVEN;
	s->resumed = r->flags & JOURNAL_RESUMED;
	s->awaiting = r->flags & JOURNAL_AWAITING;
	s->returns = !(r->flags & JOURNAL_RESUMING);
	s->busy = !s->returns && r->line.n == 0;
	core_keep(s->lasting->resume_tag, sizeof(s->lasting->resume_tag), r->line);
	return 0;
}

static int restore_watch(struct request_context *x, const struct journal_record *r)
{
	struct session *s = session_find(x->sessions, (uint64_t)r->connection);

	if (!s)
		return -EBADMSG;
	watch_restore(x, s, r);
	return 0;
}

/* The previous process knew all readers, including those that are gone. Restores until when the latter may rely on the lease. */
static int restore_ghost(struct request_context *x, const struct journal_record *r)
{
	struct lock *l = lock_find_text(&x->engine->table, r->name);

	if (x->handed && l && l->share)
		l->share->ghost_until.us = r->until_us;
	return 0;
}

static int restore_later(struct request_context *x, struct span record)
{
	uint32_t n = (uint32_t)record.n;

	if (!x->handed)
		return -EBADMSG;
	buf_append(&x->handed->waiting, &n, sizeof(n));
	buf_append(&x->handed->waiting, record.p, record.n);
	return 0;
}

static int restore_lost(struct request_context *x, struct session *s, const struct journal_record *r)
{
	enum loss why;
	struct claim *c;

	if (!loss_find(r->reason, &why))
		return -EBADMSG;
	if (permit_restore_is_loss(r))
		return permit_restore_loss(x, s, r, why);
	restore_clear(x, s, r);
	c = restore_claim(x, s, r);
	c->not_notified = !(r->flags & JOURNAL_NOTIFIED); /* if that is not known, the loss is reported again */
	hold_restore_loss(x->engine, c, r->name, why);
	return 0;
}

/* Notes whether more records of the present LOCKALL should follow. */
static void restore_note_torn(struct request_context *x, struct session *s, const struct journal_record *r)
{
	bool more = (r->kind == JOURNAL_HELD || r->kind == JOURNAL_ADOPTING) && (r->renew & JOURNAL_MORE) && !is_reader_with_terms(r);

	if (r->kind == JOURNAL_STAYS || r->kind == JOURNAL_KEPT)
		return;
	x->torn_count = !more ? 0 : s == x->torn ? x->torn_count + 1 : 1;
	x->torn = more ? s : NULL;
}

/* The file ends before the last record of a LOCKALL, so nobody was told what it got. */
static void restore_drop_torn(struct request_context *x)
{
	for (; x->torn && x->torn_count > 0; x->torn_count--)
		restore_drop(x, TAILQ_LAST(&x->torn->claims, claims));
	x->torn = NULL;
}

/* If the session is not known yet, the complete session follows later in the file, or it is over by then: see journal.h. */
static int restore_one(struct request_context *x, const struct journal_record *r, struct span record)
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
		if (s && !permit_restore_freed(x, s, r))
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
	case JOURNAL_STORES:
		return restore_stores(x, r);
	case JOURNAL_STORE:
	case JOURNAL_MARKER:
	case JOURNAL_QUARANTINE:
		return restore_store(x, r);
	case JOURNAL_CLIENT:
		return restore_client(x, s, r);
	case JOURNAL_WATCH:
		return restore_watch(x, r);
	case JOURNAL_GHOST:
		return restore_ghost(x, r);
	case JOURNAL_LINE:
	case JOURNAL_UNANSWERED:
	case JOURNAL_TICKET:
	case JOURNAL_RELEASE:
	case JOURNAL_JOB_LEFT:
	case JOURNAL_LEAVES:
		return restore_later(x, record);
	case JOURNAL_PROCESS:
	case JOURNAL_FILE:
	case JOURNAL_LISTENER:
	case JOURNAL_SOCKET:
	case JOURNAL_BYTES:
		return -EBADMSG;
	}
	return -EBADMSG;
}

int restore_record(struct request_context *x, struct span record)
{
	struct journal_record r;
	struct session *s;
	int decoded = x->distrusts ? -EBADMSG : journal_decode(record, &r);

	if (decoded == JOURNAL_UNKNOWN)
		return 0;
	if (decoded == 0 && restore_one(x, &r, record) == 0) {
		restore_note_torn(x, session_of_serial(x->sessions, (uint64_t)r.session), &r);
		return 0;
	}
	x->distrusts = true;
	x->torn = NULL;
	restore_free(x);
	while ((s = TAILQ_FIRST(&x->sessions->detached)))
		restore_end_session(x, s);
	for (uint32_t i = 0; i < x->sessions->slots; i++)
		if (x->sessions->slot[i]) {
			watch_drop(x, x->sessions->slot[i]);
			restore_end_session(x, x->sessions->slot[i]);
		}
	return -EBADMSG;
}

/* The numbers of values and of orders begin with that of the run. One run never uses all of its range, so no number is used again with the same id. */
static void restore_number(struct request_context *x)
{
	if (x->core->run == 0)
		x->core->run = 1;
	x->orders = x->engine->table.values = x->core->run << 40;
	if (!TAILQ_EMPTY(&x->sessions->detached))
		record_daemon(x);
}

/* A session that gave up its grace ended with the previous process. */
static void restore_end_graceless(struct request_context *x)
{
	struct session *s, *next;

	for (s = TAILQ_FIRST(&x->sessions->detached); s; s = next) {
		next = TAILQ_NEXT(s, lasting->in_detached);
		if (s->grace_us == 0)
			restore_end_session(x, s);
	}
}

static void restore_adopt(struct request_context *x, struct session *s)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_HELD)
			adopt_start(x->engine, &c->lock->lease);
	}
	jobs_adopt(x, s);
	permit_restore_end(x, s);
}

void restore_end(struct request_context *x)
{
	int64_t least = x->core->conf.lease_us;
	struct session *s;

	restore_drop_torn(x);
	if (!x->handed)
		restore_end_graceless(x);
	restore_number(x);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached) {
		heap_set(&x->core->timers, &s->lasting->grace, instant_add(x->core->now, s->grace_us > least ? s->grace_us : least));
		restore_adopt(x, s);
		session_note_vacant(x->sessions, s);
	}
	for (uint32_t i = 0; x->handed && i < x->sessions->slots; i++) {
		s = x->sessions->slot[i];
		if (!s)
			continue;
		session_touch(x->sessions, s);
		restore_adopt(x, s);
		resume_return_end(x, s);
	}
	if (!x->handed)
		return;
	if (x->news.missed)
		request_context_again(x);
	x->handed->until = instant_add(x->core->now, at_most(2 * x->core->conf.timeout_us, HANDED_US));
	heap_set(&x->core->timers, &x->handed->timer, x->core->now);
}

/* --- waiting requests --------------------------------------------------------------------------------------------------- */

static bool jobs_are_adopting(const struct request_context *x)
{
	const struct job *job;

	LIST_FOREACH(job, &x->jobs, in_all)
		if (job->state == JOB_ADOPTING)
			return true;
	return false;
}

static bool stores_have_answered(const struct request_context *x)
{
	return members_are_checked(&x->engine->members) && TAILQ_EMPTY(&x->engine->adopting) && !jobs_are_adopting(x);
}

bool restore_may_go_on(struct request_context *x)
{
	bool may = stores_have_answered(x) || !instant_before(x->core->now, x->handed->until);

	heap_set(&x->core->timers, &x->handed->timer, may ? x->core->now : instant_add(x->core->now, LOOK_US));
	return may;
}

static void restore_release(struct request_context *x, const struct journal_record *r)
{
	struct engine *e = x->engine;
	struct nodeset nodes = nodeset_and((struct nodeset){(uint16_t)r->placed}, nodeset_all(e->core->conf.nodes));
	enum release_kind kind = r->flags & JOURNAL_LEFT ? RELEASE_LEAVE : RELEASE_DELETE;
	struct lease_value value;
	struct release *release;

	if (!x->handed->same_stores || !nodeset_any(nodes) || !value_read(e->core, r->value, &value))
		return;
	release = release_of_value(&e->releases, kind, &lock_find_or_add_text(&e->table, r->name)->name, &value);
	release->value_since.us = r->since_us;
	release->delay_us = r->delay_us;
	release->px_us = r->px_us;
	release->shared = r->flags & JOURNAL_SHARE;
	release->unsure = nodes;
	if (kind == RELEASE_LEAVE) {
		lock_value_make(&e->table, members_one_clock_us(&e->members, e->core->now), &release->left);
		value_mark_kept(&release->left);
		release->left.limit = value.limit;
	}
	release_again(e, release, nodes, (struct instant){r->until_us});
}

/* The ticket keeps the place of requests that will wait for the name again. Or nobody wants the name any more. */
static void restore_ticket(struct request_context *x, const struct journal_record *r)
{
	const struct stamp ticket = {r->stamp_us, (uint64_t)r->sequence, r->reader ? STAMP_READER : STAMP_WRITER, r->writer_us};
	struct nodeset nodes = nodeset_and((struct nodeset){(uint16_t)r->placed}, nodeset_all(x->core->conf.nodes));
	struct contender *k;
	struct lock *l;

	if (!x->handed->same_stores || !x->core->conf.shared || r->stamp_us == 0)
		return;
	l = lock_find_or_add_text(&x->engine->table, r->name);
	if (x->engine->tickets < ticket.sequence)
		x->engine->tickets = ticket.sequence;
	if (r->flags & JOURNAL_LEFT) {
		l->name.refs++;
		ticket_withdraw_at(x->engine, &l->name, &ticket, nodes);
		l->name.refs--;
		lock_drop_if_unused(&x->engine->table, l);
		return;
	}
	k = lock_contend(&x->engine->table, l);
	k->ticket = ticket;
	k->ticket_returns = true;
	k->ticket_at = nodes;
	k->ticket_since.us = r->since_us;
	k->ticket_priority = (uint8_t)r->priority;
	l->name.refs++;
	buf_append(&x->handed->tickets, &l, sizeof(l));
}

static void restore_tickets_end(struct request_context *x, const struct buf *tickets)
{
	struct lock **l = (struct lock **)(void *)buf_begin(tickets);

	for (size_t i = 0; i < buf_length(tickets) / sizeof(struct lock *); i++) {
		struct contender *k = l[i]->contender;

		if (!contender_is_none(k))
			k->ticket_returns = false;
		if (k->patient == 0)
			ticket_end(x->engine, k); /* nobody has asked for the name again */
		l[i]->name.refs--;
		lock_drop_if_unused(&x->engine->table, l[i]);
	}
}

static void restore_leaves(struct request_context *x, struct session *s, const struct journal_record *r)
{
	s->leaving |= (r->flags & JOURNAL_LEAVING) != 0;
	s->eof |= (r->flags & JOURNAL_EOF) != 0;
	s->killed |= (r->flags & JOURNAL_KILLED) != 0;
	session_goes_on(x->sessions, s);
}

static void restore_line(struct request_context *x, struct session *s, const struct journal_record *r, struct restored_line *ret_line)
{
	struct buf *b = &x->handed->line;

	buf_append(b, r->line.p, r->line.n);
	if (r->flags & JOURNAL_GOES_ON)
		return;
	if (r->trace.n > 0) {
		buf_append(b, " trace=", 7);
		buf_commit(b, quote(r->trace, buf_reserve(b, 4 * r->trace.n + 3), 4 * r->trace.n + 3));
	}
	ret_line->session = s;
	ret_line->asked_at.us = r->since_us;
	ret_line->line = (struct input){.p = arena_copy(&x->core->out->arena, buf_begin(b), buf_length(b)), .n = buf_length(b),
	                                .is_cut = r->flags & JOURNAL_IS_CUT};
	buf_clear(b);
}

static void restore_waiting(struct request_context *x, const struct journal_record *r, struct restored_line *ret_line)
{
	struct session *s = session_find(x->sessions, (uint64_t)r->connection);

	if (r->kind == JOURNAL_RELEASE)
		restore_release(x, r);
	else if (r->kind == JOURNAL_TICKET)
		restore_ticket(x, r);
	else if (r->kind == JOURNAL_JOB_LEFT)
		job_restore_left(x, r);
	else if (!s || s->over)
		; /* it has ended since */
	else if (r->kind == JOURNAL_LINE)
		restore_line(x, s, r, ret_line);
	else if (r->kind == JOURNAL_LEAVES)
		restore_leaves(x, s, r);
	else
		send_error(x, s, r->line, ERROR_UNAVAILABLE, "the daemon was restarted before this was answered: it is not known whether it was carried out");
}

void restore_free(struct request_context *x)
{
	struct handed *h = x->handed;

	if (!h)
		return;
	x->handed = NULL;
	heap_cancel(&x->core->timers, &h->timer);
	buf_release(&h->waiting);
	buf_release(&h->line);
	buf_release(&h->tickets);
	mem_free(h);
}

bool restore_next(struct request_context *x, struct restored_line *ret_line)
{
	struct handed *h = x->handed;
	struct journal_record r;
	uint32_t n;

	*ret_line = (struct restored_line){0};
	if (buf_length(&h->waiting) == 0) {
		restore_tickets_end(x, &h->tickets);
		restore_free(x);
		return false;
	}
	memcpy(&n, buf_begin(&h->waiting), sizeof(n));
	if (journal_decode((struct span){buf_begin(&h->waiting) + sizeof(n), n}, &r) == 0)
		restore_waiting(x, &r, ret_line);
	buf_consume(&h->waiting, sizeof(n) + n);
	return true;
}
