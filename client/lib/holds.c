/* SPDX-License-Identifier: BSD-2-Clause */
/* See holds.h. */
#include "client/lib/holds.h"
#include "client/lib/boottime.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hold *)a)->name, ((const struct hold *)b)->name);
}

static void holds_forget(struct holds *holds, struct hold *h)
{
	tdelete(h, &holds->by_name, by_name);
	LIST_REMOVE(h, next);
	free(h);
}

void holds_release(struct holds *holds)
{
	struct hold *h;

	while ((h = LIST_FIRST(&holds->all)))
		holds_forget(holds, h);
}

/* No name in here contains a NUL. */
struct hold *holds_find(const struct holds *holds, struct span name)
{
	struct hold key, *const *found;

	if (!name.p || name.n > NAME_MAX_BYTES || memchr(name.p, '\0', name.n))
		return NULL;
	memcpy(key.name, name.p, name.n);
	key.name[name.n] = '\0';
	found = tfind(&key, &holds->by_name, by_name);
	return found ? *found : NULL;
}

static struct hold *holds_add(struct holds *holds, const char *name)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	memcpy(h->name, name, strlen(name) + 1);
	if (!tsearch(h, &holds->by_name, by_name)) {
		free(h);
		return NULL;
	}
	LIST_INSERT_HEAD(&holds->all, h, next);
	return h;
}

int holds_ask(struct holds *holds, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hold *h = holds_find(holds, span_of(names[i]));

		if (!h)
			h = holds_add(holds, names[i]);
		if (!h)
			return -ENOMEM;
		LIST_REMOVE(h, next);
		LIST_INSERT_HEAD(&holds->all, h, next);
		h->asked = true;
		h->row_granted = false;
	}
	return 0;
}

/* Removes h if no request asks for it, the session does not hold it, and nothing of it is to be settled. */
static void hold_tidy(struct holds *holds, struct hold *h)
{
	if (h->state == HOLD_ASKED && !h->asked && !h->count_unsure)
		holds_forget(holds, h);
}

static void hold_drop(struct holds *holds, struct hold *h)
{
	h->state = HOLD_ASKED;
	h->unlock_open = false;
	hold_tidy(holds, h);
}

static void hold_count_unsure(struct holds *holds, struct hold *h)
{
	h->count_unsure = true;
	holds->count_unsure = true;
}

/* --- answers --- */

static bool is_loss(const struct reply_line *line)
{
	return line->kind == LINE_ERR && (span_equal(line->code, SPAN("LOST")) || span_equal(line->code, SPAN("NOTHELD")));
}

static void hold_renewed(struct hold *h, const struct reply_line *line, int64_t asked_us)
{
	h->fence = reply_number(line, "fence", h->fence);
	h->until_us = asked_us + line_bounded(line, "valid_ms", 0) * US_PER_MS;
}

void tracking_grant_row(struct holds *holds, const struct pending *p, const struct reply_line *row)
{
	struct hold *h = holds_find(holds, reply_find(row, "name"));

	if (!h || !h->asked)
		return;
	h->row_granted = true;
	hold_renewed(h, row, p->sent_us);
}

/*
 * p->count is the count of the daemon. To the caller, an UNLOCK that was given up still counts. A LOCKALL of names with different counts sends no
 * count; then each name has one more.
 */
static void hold_take(struct hold *h, const struct pending *p)
{
	bool held = h->state == HOLD_HELD;

	h->count = p->count >= 0 ? p->count + (held && h->unlock_open) : (held ? h->count : 0) + 1;
	h->unlock_open &= held;
	h->shared = p->shared;
	h->permit = p->permit;
	h->state = HOLD_HELD;
}

/*
 * An answer other than ERR settles what the session holds. One exception: a LOCKALL that was sent again and not granted may leave some of its names
 * locked, which the first one had taken.
 */
static void lock_answered(struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	bool partly = answer->kind != LINE_OK && p->kind == PENDING_LOCKALL && p->again;
	struct hold *h, *next;

	if (answer->kind == LINE_OK && p->kind != PENDING_LOCKALL)
		tracking_grant_row(holds, p, answer);
	for (h = LIST_FIRST(&holds->all); h && h->asked; h = next) {
		next = LIST_NEXT(h, next);
		if (answer->kind == LINE_OK && h->row_granted)
			hold_take(h, p);
		h->asked = false;
		h->count_unsure &= answer->kind == LINE_ERR;
		if (partly)
			hold_count_unsure(holds, h);
		hold_tidy(holds, h);
	}
}

static void unlock_answered(struct holds *holds, struct hold *h, const struct pending *p, const struct reply_line *answer)
{
	/* After QUORUM of sync=yes it is not known whether the lock is free, but the session does not hold it any more. */
	if (answer->kind == LINE_ERR && !span_equal(answer->code, SPAN("QUORUM")))
		return;
	h->unlock_open = false;
	h->count = p->count >= 0 ? p->count : line_bounded(answer, "count", 0);
	if (h->count <= 0 || answer->kind == LINE_ERR)
		holds_forget(holds, h);
}

void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	struct hold *h;

	if (pending_locks(p))
		lock_answered(holds, p, answer);
	h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;
	if (!h)
		return;
	/* The daemon reported this loss itself, and will again if asked, so it needs no tracking. */
	if (is_loss(answer))
		hold_drop(holds, h);
	else if (p->kind == PENDING_UNLOCK)
		unlock_answered(holds, h, p, answer);
	else if (p->kind == PENDING_READ && answer->kind == LINE_OK && h->state == HOLD_HELD)
		hold_renewed(h, answer, p->sent_us);
}

/* --- pushes --- */

/* A LOCK in flight takes the name again: its grant is tracked, or given back if the LOCK is given up. */
bool tracking_push(struct holds *holds, const struct reply_line *push)
{
	struct hold *h;

	if (!span_equal(push->code, SPAN("LOST")) || reply_find(push, "owner").p || reply_find(push, "job").p)
		return true;
	h = holds_find(holds, reply_find(push, "name"));
	if (!h)
		return true;
	if (h->loss_reported && reply_number(push, "fence", 0) == h->loss_reported)
		return false;
	if (h->state == HOLD_HELD && reply_number(push, "fence", h->fence) == h->fence)
		hold_drop(holds, h);
	return true;
}

void tracking_loss(struct hold *h, struct draft *d)
{
	draft_verb(d, "! LOST");
	draft_quoted(d, " name=", h->name);
	draft_number(d, "fence", h->fence);
	draft_text(d, " reason=");
	draft_text(d, h->reason);
	h->reason = NULL;
	h->loss_reported = h->fence;
}

/* --- RESUME --- */

void tracking_resume(struct holds *holds)
{
	struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		h->seen = false;
}

void tracking_row(struct holds *holds, const struct reply_line *line, int64_t asked_us)
{
	struct hold *h = holds_find(holds, reply_find(line, "name"));

	if (!h || h->state != HOLD_HELD || reply_find(line, "owner").p || reply_find(line, "job").p)
		return;
	if (!h->permit && h->fence != reply_number(line, "fence", 0))
		return;
	h->seen = true;
	hold_renewed(h, line, asked_us);
}

/* The UNLOCK in flight was sent while the lock was valid. Either the daemon did it, or its answer reports the loss. */
static bool is_being_unlocked(const struct hold *h, const struct pending *p)
{
	return pending_is(p, PENDING_UNLOCK, h->name) && p->asked_us < h->until_us;
}

static void hold_end(struct hold *h, const struct pending *p, const char *reason)
{
	if (is_being_unlocked(h, p) || (h->unlock_open && h->count <= 1))
		return;
	h->state = HOLD_LOST;
	h->reason = reason;
	h->unlock_open = false;
}

void tracking_end(struct holds *holds, const struct pending *p, const char *reason)
{
	struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (!h->seen && h->state == HOLD_HELD)
			hold_end(h, p, reason);
}

const char *tracking_unseen(const struct holds *holds)
{
	const struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (!h->seen && h->state == HOLD_HELD)
			return h->name;
	return NULL;
}

void tracking_checked(struct holds *holds, const struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (answer->kind == LINE_OK)
		tracking_row(holds, answer, asked_us);
	if (!h || h->state != HOLD_HELD || h->seen)
		return;
	h->seen = true;
	if (answer->kind == LINE_OK || is_loss(answer))
		hold_end(h, p, "evicted");
}

bool tracking_knows_loss(const struct holds *holds, const struct pending *p)
{
	const struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	return h && h->state == HOLD_LOST && !pending_locks(p);
}

void tracking_loss_acknowledged(struct holds *holds, const struct pending *p)
{
	struct hold *h = holds_find(holds, span_of(p->name));

	if (h && p->kind == PENDING_UNLOCK)
		hold_drop(holds, h);
}

/* An UNLOCK that was given up counts as done. The next one sends the same count. */
static int64_t hold_count(const struct hold *h)
{
	return h && h->state == HOLD_HELD ? h->count - h->unlock_open : 0;
}

/* --- the count of a request; -1: it has none --- */

/* A LOCK in the other mode converts the hold, which keeps the count, or is refused. */
static int64_t lock_count(const struct hold *h, const struct pending *p)
{
	bool converts = p->kind == PENDING_LOCK && hold_count(h) > 0 && h->shared != p->shared;

	return hold_count(h) + !converts;
}

/* LOCKALL has one count for all names. LOCKANY is about the first name that the session holds, if there is one. */
static int64_t locks_count(const struct holds *holds, const struct pending *p)
{
	const struct hold *h;
	int64_t count = -1;

	for (h = LIST_FIRST(&holds->all); h && h->asked; h = LIST_NEXT(h, next)) {
		if (p->kind == PENDING_LOCKALL && count >= 0 && count != lock_count(h, p))
			return -1;
		if (count < 0 || hold_count(h) > 0)
			count = lock_count(h, p);
	}
	return count;
}

static int64_t request_count(const struct holds *holds, const struct pending *p)
{
	const struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	if (pending_locks(p))
		return locks_count(holds, p);
	return p->kind == PENDING_UNLOCK && h && h->state == HOLD_HELD ? h->count - 1 : -1;
}

/* Each permit of a name has its own fence, so requests about permits send none. */
static bool has_fence(const struct hold *h)
{
	return h && h->state == HOLD_HELD && h->fence && !h->permit;
}

void count_field_draft(const struct holds *holds, struct pending *p, struct draft *d)
{
	const struct hold *h = holds && p->kind == PENDING_UNLOCK ? holds_find(holds, span_of(p->name)) : NULL;

	p->count = holds ? request_count(holds, p) : -1;
	pending_draft(p, d);
	if (has_fence(h))
		draft_number(d, "fence", h->fence);
	if (p->count >= 0)
		draft_number(d, "count", p->count);
}

bool count_field_is_outdated(const struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	bool refused = answer->kind == LINE_ERR && (span_equal(answer->code, SPAN("LOST")) || span_equal(answer->code, SPAN("ARG")));

	return refused && pending_locks(p) && !p->cancelled && p->count >= 0 && p->count != request_count(holds, p);
}

/* --- calls that were given up --- */

void count_field_give_up(struct holds *holds, const struct pending *p)
{
	struct hold *h, *next;

	for (h = LIST_FIRST(&holds->all); h; h = next) {
		next = LIST_NEXT(h, next);
		if (h->asked && p->sent)
			hold_count_unsure(holds, h);
		else if (p->sent && h->state == HOLD_HELD && pending_is(p, PENDING_UNLOCK, h->name))
			h->unlock_open = true;
		h->asked = false;
		hold_tidy(holds, h);
	}
}

bool count_field_refuse(struct holds *holds, const char *name)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (!h || h->state != HOLD_HELD)
		return false;
	if (--h->count <= 0)
		h->state = HOLD_ASKED;
	hold_count_unsure(holds, h);
	return true;
}

void count_field_resume(struct holds *holds, const struct pending *p)
{
	struct hold *h;

	if (!p->in_flight || !p->sent || !pending_locks(p) || request_count(holds, p) >= 0)
		return;
	LIST_FOREACH(h, &holds->all, next)
		if (h->asked)
			hold_count_unsure(holds, h);
}

const struct hold *count_field_next_unsure(struct holds *holds, const struct pending *p)
{
	bool counted = request_count(holds, p) >= 0;
	const struct hold *h;

	holds->count_unsure = false;
	LIST_FOREACH(h, &holds->all, next)
		if (h->count_unsure && !(counted && h->asked))
			return h;
	return NULL;
}

void count_field_draft_unlock(const struct hold *h, struct draft *d)
{
	draft_begin(d, "UNLOCK", h->name);
	if (has_fence(h))
		draft_number(d, "fence", h->fence);
	draft_number(d, "count", hold_count(h));
}

void count_field_corrected(struct holds *holds, const char *name)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (!h)
		return;
	h->count_unsure = false;
	hold_tidy(holds, h);
}

/* --- jobs --- */

static struct unchecked_job *unchecked_jobs_find(const struct unchecked_jobs *all, struct span queue, struct span id)
{
	struct unchecked_job *t;

	LIST_FOREACH(t, all, next)
		if (span_equal(t->queue, queue) && span_equal(t->id, id))
			return t;
	return NULL;
}

/* NULL is allowed. */
static void unchecked_jobs_free(struct unchecked_job *t)
{
	if (t)
		LIST_REMOVE(t, next);
	free(t);
}

static int unchecked_jobs_add(struct unchecked_jobs *all, struct span queue, struct span id)
{
	struct unchecked_job *t = calloc(1, sizeof(*t) + queue.n + id.n);

	if (!t)
		return -ENOMEM;
	t->queue = (struct span){memcpy(t->text, queue.p, queue.n), queue.n};
	t->id = (struct span){memcpy(t->text + queue.n, id.p, id.n), id.n};
	LIST_INSERT_HEAD(all, t, next);
	return 0;
}

/* Only the answer to TAKE has a payload. */
int unchecked_jobs_answer(struct unchecked_jobs *all, const struct reply_line *answer)
{
	struct span queue = reply_find(answer, "queue"), id = reply_find(answer, "job");
	bool gives = reply_find(answer, "payload").p;
	struct unchecked_job *t;

	if (answer->kind != LINE_OK || !queue.p || !id.p)
		return 0;
	t = unchecked_jobs_find(all, queue, id);
	if (t && (gives || !t->given_up))
		unchecked_jobs_free(t);
	return gives ? unchecked_jobs_add(all, queue, id) : 0;
}

void unchecked_jobs_push(struct unchecked_jobs *all, const struct reply_line *push)
{
	if (span_equal(push->code, SPAN("LOST")))
		unchecked_jobs_free(unchecked_jobs_find(all, reply_find(push, "queue"), reply_find(push, "job")));
}

void unchecked_jobs_give_up(struct unchecked_jobs *all, const char *queue, const char *id)
{
	struct unchecked_job *t = unchecked_jobs_find(all, span_of(queue), span_of(id));

	if (t)
		t->given_up = true;
}

void unchecked_jobs_resume(struct unchecked_jobs *all)
{
	struct unchecked_job *t;

	LIST_FOREACH(t, all, next)
		t->asked = t->returns = false;
}

static void draft_job(struct draft *d, const char *verb, struct span word, const char *field, struct span value)
{
	draft_verb(d, verb);
	draft_bytes(d, " ", (struct redlock_bytes){word.p, word.n});
	draft_bytes(d, field, (struct redlock_bytes){value.p, value.n});
}

bool unchecked_jobs_ask(struct unchecked_jobs *all, struct draft *d)
{
	struct unchecked_job *t = LIST_FIRST(all);

	if (!t)
		return false;
	if (t->returns)
		draft_job(d, "RETRY", t->id, " queue=", t->queue);
	else
		draft_job(d, "CHECK", t->queue, " job=", t->id);
	if (t->returns)
		draft_text(d, " failed=no");
	return t->asked = true;
}

/*
 * A push may have reported meanwhile that the job is lost. CHECK comes first, because a RETRY of a job that the session does not have could make a
 * dead job due.
 */
void unchecked_jobs_asked(struct unchecked_jobs *all, bool ok)
{
	struct unchecked_job *t = LIST_FIRST(all);

	if (t && t->asked && t->given_up && !t->returns && ok)
		t->returns = true;
	else if (t && t->asked)
		unchecked_jobs_free(t);
}

void unchecked_jobs_release(struct unchecked_jobs *all)
{
	while (!LIST_EMPTY(all))
		unchecked_jobs_free(LIST_FIRST(all));
}
