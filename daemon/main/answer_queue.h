/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of Redis servers for which a loop pass had no time: the service gets them in the next passes, in the order in which they came. */
#ifndef MAIN_ANSWER_QUEUE_H
#define MAIN_ANSWER_QUEUE_H

#include "daemon/core/event/event.h"

/* Copies, with all their texts. A zero-filled one is empty. */
struct answer_queue {
	struct answer *answer; /* answer[first … end) */
	size_t first, end, cap;
};

void answer_queue_release(struct answer_queue *q);
void answer_queue_add(struct answer_queue *q, const struct answer *a);
void answer_queue_drop_first(struct answer_queue *q);

static inline bool answer_queue_is_empty(const struct answer_queue *q)
{
	return q->first == q->end;
}

static inline const struct answer *answer_queue_first(const struct answer_queue *q)
{
	return &q->answer[q->first];
}

#endif
