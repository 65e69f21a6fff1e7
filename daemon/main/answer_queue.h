/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers of Redis servers for which a loop pass had no time, and the connections that end or begin after them. The service gets them in the next passes, in
 * the order in which they came.
 */
#ifndef MAIN_ANSWER_QUEUE_H
#define MAIN_ANSWER_QUEUE_H

#include "daemon/core/event/event.h"

/* Copies, with all their texts. A zero-filled queue is empty. */
struct answer_queue {
	struct event *event; /* event[first … end) */
	size_t first, end, cap;
	unsigned news[NODES_MAX]; /* how many of them report the end or beginning of each node's connection */
};

void answer_queue_release(struct answer_queue *q);
void answer_queue_add(struct answer_queue *q, const struct event *e); /* EVENT_ANSWER, or an event of a node */
void answer_queue_drop_first(struct answer_queue *q);

static inline bool answer_queue_is_empty(const struct answer_queue *q)
{
	return q->first == q->end;
}

/* A connection of this node has ended or begun, and the service does not know it yet. */
static inline bool answer_queue_has_news(const struct answer_queue *q, unsigned node)
{
	return q->news[node] > 0;
}

static inline struct event *answer_queue_first(const struct answer_queue *q)
{
	return &q->event[q->first];
}

#endif
