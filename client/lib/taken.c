/* SPDX-License-Identifier: BSD-2-Clause */
/* See taken.h. */
#include "client/lib/taken.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct span taken_queue(const struct taken *t)
{
	return (struct span){t->text, t->queue_n};
}

static struct span taken_id(const struct taken *t)
{
	return (struct span){t->text + t->queue_n, t->id_n};
}

static struct taken *taken_find(const struct takens *all, struct span queue, struct span id)
{
	struct taken *t;

	LIST_FOREACH(t, all, next)
		if (span_equal(taken_queue(t), queue) && span_equal(taken_id(t), id))
			return t;
	return NULL;
}

static void taken_free(struct taken *t)
{
	if (!t)
		return;
	LIST_REMOVE(t, next);
	free(t);
}

static int taken_add(struct takens *all, struct span queue, struct span id)
{
	struct taken *t = calloc(1, sizeof(*t) + queue.n + id.n);

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
int taken_answer(struct takens *all, const struct reply_line *answer)
{
	struct span queue, id;
	struct taken *t;
	bool gives;

	if (answer->kind != LINE_OK)
		return 0;
	queue = reply_find(answer, "queue");
	id = reply_find(answer, "job");
	gives = reply_find(answer, "payload").p;
	if (!queue.p || !id.p)
		return 0;
	t = taken_find(all, queue, id);
	if (t && (gives || !t->given_up))
		taken_free(t);
	return gives ? taken_add(all, queue, id) : 0;
}

void taken_push(struct takens *all, const struct reply_line *push)
{
	struct span queue, id;

	if (!span_equal(push->code, SPAN("LOST")))
		return;
	queue = reply_find(push, "queue");
	id = reply_find(push, "job");
	if (queue.p && id.p)
		taken_free(taken_find(all, queue, id));
}

void taken_give_up(struct takens *all, const char *queue, const char *id)
{
	struct taken *t = taken_find(all, span_of(queue), span_of(id));

	if (t)
		t->given_up = true;
}

void taken_resume(struct takens *all)
{
	struct taken *t;

	LIST_FOREACH(t, all, next) {
		t->unsure = true;
		t->asked = t->returns = false;
	}
}

static struct taken *taken_unsure(const struct takens *all)
{
	struct taken *t;

	LIST_FOREACH(t, all, next)
		if (t->unsure)
			return t;
	return NULL;
}

bool taken_ask(struct takens *all, struct draft *d)
{
	struct taken *t = taken_unsure(all);
	struct span first, second;

	if (!t)
		return false;
	first = t->returns ? taken_id(t) : taken_queue(t);
	second = t->returns ? taken_queue(t) : taken_id(t);
	draft_verb(d, t->returns ? "RETRY" : "CHECK");
	draft_bytes(d, " ", (struct redlock_bytes){first.p, first.n});
	draft_bytes(d, t->returns ? " queue=" : " job=", (struct redlock_bytes){second.p, second.n});
	if (t->returns)
		draft_text(d, " failed=no");
	return t->asked = true;
}

/* A push may have told meanwhile that it is lost. A RETRY of a job that the session does not have could make a dead one due, so CHECK comes first. */
void taken_asked(struct takens *all, bool ok)
{
	struct taken *t;

	LIST_FOREACH(t, all, next)
		if (t->asked)
			break;
	if (t && t->given_up && !t->returns && ok)
		t->returns = true;
	else
		taken_free(t);
}

void taken_release(struct takens *all)
{
	while (!LIST_EMPTY(all))
		taken_free(LIST_FIRST(all));
}
