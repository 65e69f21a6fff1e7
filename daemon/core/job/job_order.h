/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DEFER, and RETRY of a job that has failed too often: orders to the home of a queue. An order is acknowledged only once the home has said that it was carried
 * out. If an answer stays out it is given again. A DEFER has a nonce, the same in all its tries, so the home carries it out once. It carries out no try after
 * the client was told that the outcome is not known.
 */
#ifndef CORE_JOB_ORDER_H
#define CORE_JOB_ORDER_H

#include "daemon/core/session/jobs.h"

/* The order of the request that is being served. words: the arguments behind the id. */
void job_order_new(struct request_context *x, struct session *s, struct span queue, struct span id, struct buf *words);
/* Until when an order that is given now is given again. */
struct instant job_order_until(const struct request_context *x);
void job_order_told(struct request_context *x, struct home_question *q);
void job_order_fired(struct request_context *x, struct timer *t);
void orders_free_all(struct request_context *x);

#endif
