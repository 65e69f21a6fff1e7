/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST queues: queues have homes of their own, so each store is asked for those that it keeps, piece by piece. */
#ifndef CORE_QUEUE_LIST_H
#define CORE_QUEUE_LIST_H

#include "daemon/core/reply/listing.h"

extern const struct listed listed_queues;
void queue_list_told(struct request_context *x, struct home_question *q);

#endif
