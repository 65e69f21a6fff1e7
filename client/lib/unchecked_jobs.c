/* SPDX-License-Identifier: BSD-2-Clause */
/* See unchecked_jobs.h. */
#include "client/lib/unchecked_jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct span unchecked_jobs_queue(const struct unchecked_job *t)
{
	return (struct span){t->text, t->queue_n};
}

static struct span unchecked_jobs_id(const struct unchecked_job *t)
{
	return (struct span){t->text + t->queue_n, t->id_n};
}

static struct unchecked_job *unchecked_jobs_find(const struct unchecked_jobs *all, struct span queue, struct span id)
{
	struct unchecked_job *t;

	LIST_FOREACH(t, all, next)
		if (span_equal(unchecked_jobs_queue(t), queue) && span_equal(unchecked_jobs_id(t), id))
			return t;
	return NULL;
}

static void unchecked_jobs_free(struct unchecked_job *t)
{
	if (!t)
		return;
	LIST_REMOVE(t, next);
	free(t);
}

static int unchecked_jobs_add(struct unchecked_jobs *all, struct span queue, struct span id)
{
	struct unchecked_job *t = calloc(1, sizeof(*t) + queue.n + id.n);

	if (!t)
		return -ENOMEM;
	t->queue_n = queue.n;
	t->id_n = id.n;
	memcpy(t->text, queue.p, queue.n);
	memcpy(t->text + queue.n, id.p, id.n);
	LIST_INSERT_HEAD(all, t, next);
	return 0;
}

/* Only the answer to TAKE has a payload. */
int unchecked_jobs_answer(struct unchecked_jobs *all, const struct reply_line *answer)
{
	struct span queue, id;
	struct unchecked_job *t;
	bool gives;

	if (answer->kind != LINE_OK)
		return 0;
	queue = reply_find(answer, "queue");
	id = reply_find(answer, "job");
	gives = reply_find(answer, "payload").p;
	if (!queue.p || !id.p)
		return 0;
	t = unchecked_jobs_find(all, queue, id);
	if (t && (gives || !t->given_up))
		unchecked_jobs_free(t);
	return gives ? unchecked_jobs_add(all, queue, id) : 0;
}

void unchecked_jobs_push(struct unchecked_jobs *all, const struct reply_line *push)
{
	struct span queue, id;

	if (!span_equal(push->code, SPAN("LOST")))
		return;
	queue = reply_find(push, "queue");
	id = reply_find(push, "job");
	if (queue.p && id.p)
		unchecked_jobs_free(unchecked_jobs_find(all, queue, id));
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

	LIST_FOREACH(t, all, next) {
		t->unsure = true;
		t->asked = t->returns = false;
	}
}

static struct unchecked_job *unchecked_jobs_unsure(const struct unchecked_jobs *all)
{
	struct unchecked_job *t;

	LIST_FOREACH(t, all, next)
		if (t->unsure)
			return t;
	return NULL;
}

bool unchecked_jobs_ask(struct unchecked_jobs *all, struct draft *d)
{
	struct unchecked_job *t = unchecked_jobs_unsure(all);
	struct span first, second;

	if (!t)
		return false;
	first = t->returns ? unchecked_jobs_id(t) : unchecked_jobs_queue(t);
	second = t->returns ? unchecked_jobs_queue(t) : unchecked_jobs_id(t);
	draft_verb(d, t->returns ? "RETRY" : "CHECK");
	draft_bytes(d, " ", (struct redlock_bytes){first.p, first.n});
	draft_bytes(d, t->returns ? " queue=" : " job=", (struct redlock_bytes){second.p, second.n});
	if (t->returns)
		draft_text(d, " failed=no");
	return t->asked = true;
}

/* A push may have told meanwhile that it is lost. A RETRY of a job that the session does not have could make a dead one due, so CHECK comes first. */
void unchecked_jobs_asked(struct unchecked_jobs *all, bool ok)
{
	struct unchecked_job *t;

	LIST_FOREACH(t, all, next)
		if (t->asked)
			break;
	if (t && t->given_up && !t->returns && ok)
		t->returns = true;
	else
		unchecked_jobs_free(t);
}

void unchecked_jobs_release(struct unchecked_jobs *all)
{
	while (!LIST_EMPTY(all))
		unchecked_jobs_free(LIST_FIRST(all));
}
