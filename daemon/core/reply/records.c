/* SPDX-License-Identifier: BSD-2-Clause */
/* See records.h. */
#include "daemon/core/reply/records.h"

#include "daemon/core/event/journal.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/session/jobs.h"

#include <stdio.h>

#define OWNER_ROOM 640 /* as in the journal */
#define RECORDS_A_STEP 1024 /* in a snapshot. The last session may exceed it */
#define BYTES_A_STEP ((size_t)256 << 10) /* the same in bytes */

_Static_assert(8 * NODES_MAX <= 72, "the votes of a hold fit into a record");
_Static_assert(JOURNAL_NAME_MAX >= SLOT_NAME_MAX, "the name of a slot fits into a record");

/* first: see EFFECT_JOURNAL. */
static void record_in_time(struct request_context *x, const struct journal_record *record, bool first)
{
	char *bytes = arena_reserve(&x->core->out->arena, JOURNAL_RECORD_MAX + record->line.n + record->stores.n + record->user.n + record->groups.n);
	size_t n = journal_encode(record, bytes);
	struct effect *effect;

	arena_commit(&x->core->out->arena, n);
	effect = effects_add(x->core->out, EFFECT_JOURNAL);
	effect->journal.record = (struct span){bytes, n};
	effect->journal.first = first;
}

void remember(struct request_context *x, const struct journal_record *record)
{
	record_in_time(x, record, false);
}

static bool is_remembered(const struct request_context *x, const struct session *s)
{
	return s->known && (!x->core->journal_off || x->snapshot);
}

/* A line that was sent counts as read in a restart only. After a crash the client may not have received it. */
static int64_t notified_flag(const struct request_context *x, bool notified)
{
	return notified && x->hands_over.n > 0 ? JOURNAL_NOTIFIED : 0;
}

static int64_t risk(const struct request_context *x, bool notified)
{
	return notified && x->hands_over.n > 0 ? JOURNAL_RISK : 0;
}

void record_daemon(struct request_context *x)
{
	if (x->named)
		return;
	x->named = true;
	remember(x, &(struct journal_record){
		.kind = JOURNAL_DAEMON, .daemon = span_of(x->core->daemon_id), .run = (int64_t)x->core->run, .stores = x->hands_over});
}

void record_session(struct request_context *x, const struct session *s)
{
	if (!is_remembered(x, s))
		return;
	record_daemon(x);
	remember(x, &(struct journal_record){.kind = JOURNAL_SESSION,
	                                     .session = (int64_t)s->serial,
	                                     .secret = span_of(s->lasting->secret),
	                                     .label = span_of(s->label ? s->label : ""),
	                                     .grace_us = s->grace_us > 0 || x->hands_over.n > 0 ? s->grace_us : JOURNAL_NO_GRACE,
	                                     .heartbeat_us = s->heartbeat_us});
}

void record_over(struct request_context *x, const struct session *s)
{
	if (is_remembered(x, s))
		remember(x, &(struct journal_record){.kind = JOURNAL_OVER, .session = (int64_t)s->serial});
}

/* owner: as it is written into the record. flags: added to JOURNAL_PARTS and RENEW. */
static void record_hold(struct request_context *x, const struct session *s, struct claim *c, struct span owner, int64_t flags, bool notified)
{
	const struct remark remark = claim_remark(c);
	struct lock *l = c->lock;
	struct prior_lease left;

	l->lease.recorded = true;
	left = adoption_record(x->core, &l->lease);
	/* A downgrade is recorded before the stores are asked to share the lock. If they share it already, the next run finds no key that is held alone. */
	record_in_time(x, &(struct journal_record){.kind = JOURNAL_HELD,
	                                     .session = (int64_t)s->serial,
	                                     .name = left.name,
	                                     .owner = owner,
	                                     .note = remark.note,
	                                     .trace = remark.trace,
	                                     .value = left.value,
	                                     .count = c->count,
	                                     .fence = c->token,
	                                     .ttl_us = left.ttl_us,
	                                     .delay_us = c->delay_us,
	                                     .renew = (c->renew ? JOURNAL_RENEWED : 0) | (c->shared ? JOURNAL_SHARED : 0) | flags,
	                                     .notified = notified,
	                                     .granted_at_us = c->granted_at.us,
	                                     .flags = risk(x, l->lease.at_risk),
	                                     .until_us = x->hands_over.n > 0 ? left.end.us : 0,
	                                     .votes = x->hands_over.n > 0 && !c->shared ? left.votes : (struct span){0},
	                                     .placed = x->hands_over.n > 0 && !c->shared ? left.gaps.bits : 0,
	                                     .deadline_us = left.deadline.us}, c->shared && !l->lease.shared);
}

void record_held(struct request_context *x, struct claim *c)
{
	if (is_remembered(x, c->session))
		record_hold(x, c->session, c, claim_owner(c), x->more ? JOURNAL_MORE : 0, !c->not_notified);
}

static void record_free(struct request_context *x, const struct session *s, const struct claim *c, struct span owner)
{
	remember(x, &(struct journal_record){.kind = JOURNAL_FREED, .session = (int64_t)s->serial, .name = name_text(&c->lock->name), .owner = owner});
}

/* --- permits --- */

/* The owner in the records of a permit, or in that of its loss: see permit.h. */
static struct span permit_owner(struct request_context *x, const struct permit *p, bool lost)
{
	char *room = arena_reserve(&x->core->out->arena, OWNER_ROOM);
	int n = snprintf(room, OWNER_ROOM, "%s%u %u 1 ", lost ? JOURNAL_LOSS_OWNER : SEAT_OWNER, p->order, p->semaphore->limit);

	if (lost)
		n += snprintf(room + n, OWNER_ROOM - (size_t)n, "%u ", p->slot.slot);
	if (p->bid.owner.n > 0)
		memcpy(room + n, p->bid.owner.p, p->bid.owner.n);
	arena_commit(&x->core->out->arena, OWNER_ROOM);
	return (struct span){room, (size_t)n + p->bid.owner.n};
}

static void record_seat(struct request_context *x, const struct permit *p, struct claim *c, bool held)
{
	if (!c || (held && c->state != CLAIM_HELD))
		return;
	if (held)
		record_hold(x, p->bid.session, c, permit_owner(x, p, false), JOURNAL_PERMIT, !p->bid.not_notified);
	else
		record_free(x, p->bid.session, c, permit_owner(x, p, false));
}

static void record_seats(struct request_context *x, const struct permit *p, bool held)
{
	if (!is_remembered(x, p->bid.session) || p->state != PERMIT_HELD)
		return;
	record_seat(x, p, p->mark.claim, held);
	record_seat(x, p, p->slot.claim, held);
}

void record_permit(struct request_context *x, const struct permit *p)
{
	record_seats(x, p, true);
}

void record_permit_lost(struct request_context *x, const struct permit *p)
{
	if (is_remembered(x, p->bid.session))
		remember(x, &(struct journal_record){.kind = JOURNAL_LOST,
		                                     .session = (int64_t)p->bid.session->serial,
		                                     .name = p->semaphore->name,
		                                     .owner = permit_owner(x, p, true),
		                                     .fence = p->fence,
		                                     .reason = span_of(loss_word(p->loss)),
		                                     .flags = notified_flag(x, !p->bid.not_notified)});
}

void record_permit_freed(struct request_context *x, const struct permit *p)
{
	record_seats(x, p, false);
	if (p->state == PERMIT_LOST && is_remembered(x, p->bid.session))
		remember(x, &(struct journal_record){.kind = JOURNAL_FREED,
		                                     .session = (int64_t)p->bid.session->serial,
		                                     .name = p->semaphore->name,
		                                     .owner = permit_owner(x, p, true)});
}

/* --- */

void record_freed(struct request_context *x, const struct claim *c)
{
	if (is_remembered(x, c->session))
		record_free(x, c->session, c, claim_owner(c));
}

void record_lost(struct request_context *x, const struct claim *c)
{
	if (is_remembered(x, c->session))
		remember(x, &(struct journal_record){.kind = JOURNAL_LOST,
		                                     .session = (int64_t)c->session->serial,
		                                     .name = name_text(&c->lock->name),
		                                     .owner = claim_owner(c),
		                                     .fence = c->token,
		                                     .reason = span_of(loss_word(c->loss)),
		                                     .flags = notified_flag(x, !c->not_notified)});
}

void record_job_known(struct request_context *x, const struct job *job)
{
	if (is_remembered(x, job->session))
		remember(x, &(struct journal_record){
			.kind = JOURNAL_JOB_KNOWN, .session = (int64_t)job->session->serial, .queue = job->queue, .job = job->id});
}

void record_job_ending(struct request_context *x, const struct job *job)
{
	if (is_remembered(x, job->session))
		remember(x, &(struct journal_record){.kind = JOURNAL_JOB_ENDING,
		                                     .session = (int64_t)job->session->serial,
		                                     .queue = job->queue,
		                                     .job = job->id,
		                                     .delay_us = job->delay_us,
		                                     .deadline_us = job->until.us,
		                                     .end = job->end});
}

void record_job(struct request_context *x, const struct job *job)
{
	struct span value = job->state == JOB_ADOPTING ? job->former : value_in_text(x->core, &job->value);

	if (is_remembered(x, job->session))
		remember(x, &(struct journal_record){.kind = JOURNAL_JOB,
		                                     .session = (int64_t)job->session->serial,
		                                     .queue = job->queue,
		                                     .job = job->id,
		                                     .lock = job->lock,
		                                     .value = value,
		                                     .attempt = job->attempt,
		                                     .ttl_us = job->ttl_us,
		                                     .flags = notified_flag(x, job->here) | risk(x, job->at_risk)});
	if (job->known)
		record_job_known(x, job);
	if (job->state == JOB_ENDING)
		record_job_ending(x, job);
}

void record_job_lost(struct request_context *x, const struct job *job)
{
	if (is_remembered(x, job->session))
		remember(x, &(struct journal_record){.kind = JOURNAL_JOB_LOST,
		                                     .session = (int64_t)job->session->serial,
		                                     .queue = job->queue,
		                                     .job = job->id,
		                                     .lock = job->lock,
		                                     .reason = span_of(loss_word(job->loss)),
		                                     .flags = notified_flag(x, !job->not_notified)});
}

void record_job_over(struct request_context *x, const struct job *job)
{
	if (is_remembered(x, job->session))
		remember(x, &(struct journal_record){
			.kind = JOURNAL_JOB_OVER, .session = (int64_t)job->session->serial, .queue = job->queue, .job = job->id});
}

void record_all_of(struct request_context *x, const struct session *s)
{
	const struct permit *p;
	struct claim *c;
	const struct job *job;

	record_session(x, s);
	LIST_FOREACH(job, &s->jobs, in_session)
		if (!job->superseded)
			(job->state == JOB_LOST ? record_job_lost : record_job)(x, job);
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_HELD)
			record_held(x, c);
		else if (c->state == CLAIM_LOST)
			record_lost(x, c);
	}
	PERMITS_FOREACH(p, s) {
		record_permit(x, p);
		if (p->state == PERMIT_LOST)
			record_permit_lost(x, p);
	}
}

bool record_more(struct request_context *x)
{
	const struct effects *out = x->core->out;
	size_t at = out->count, end = at + core_portion(x->core, RECORDS_A_STEP), bytes = 0;
	struct map_node *node;

	if (!x->snapshot) {
		x->snapshot = true;
		x->snapshot_at = (struct map_walk){0};
		x->named = false;
	}
	while (at < end && bytes < BYTES_A_STEP) {
		x->snapshot = map_walk(&x->sessions->known, &x->snapshot_at, &node);
		if (!x->snapshot)
			return false;
		for (; node; node = node->next)
			if (map_walk_meets(&x->snapshot_at, node))
				record_all_of(x, container_of(node, struct lasting, by_serial)->session);
		for (; at < out->count; at++)
			bytes += out->item[at].journal.record.n;
	}
	return true;
}
