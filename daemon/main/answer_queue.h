/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers of Redis servers for which a loop pass had no time, and behind them the ends and beginnings of connections: the service gets them in the next passes,
 * in the order in which they came.
 */
#ifndef MAIN_ANSWER_QUEUE_H
#define MAIN_ANSWER_QUEUE_H

#include "daemon/core/event/event.h"

/* Copies, with all their texts. A zero-filled one is empty. */
struct answer_queue {
	struct event *event; /* event[first … end) */
	size_t first, end, cap;
	unsigned news[NODES_MAX]; /* how many of them are ends or beginnings of the connection of each node */
};

void answer_queue_release(struct answer_queue *q);
void answer_queue_add(struct answer_queue *q, const struct event *e); /* EVENT_ANSWER, or one of a node */
void answer_queue_drop_first(struct answer_queue *q);

static inline bool answer_queue_is_empty(const struct answer_queue *q)
{
	return q->first == q->end;
}

/* The service does not know yet what became of the connection of this node. */
static inline bool answer_queue_has_news(const struct answer_queue *q, unsigned node)
{
	return q->news[node] > 0;
}

static inline struct event *answer_queue_first(const struct answer_queue *q)
{
	return &q->event[q->first];
}

#endif
