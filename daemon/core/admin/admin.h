/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests BREAK, DRAIN and KILL; when nobody holds anything any more; what new rules no longer allow. */
#ifndef CORE_ADMIN_H
#define CORE_ADMIN_H

#include "daemon/core/session/request_context.h"

/*
 * A drain: the daemon grants nothing new. It waits until nobody holds anything, or for the time that an administrator has set. Then it may be stopped. Holders
 * go on as before. Only EVENT_STOP ends a drain, whether it is over or not.
 */

/* TIMER_DRAIN: its time is over. */
void drain_fired(struct request_context *x);
/* drain.more: refuses more of the waiting requests. */
void drain_again(struct request_context *x);
/* The daemon may be stopped: it drains, and nobody holds or waits for anything, or the time is over. Each call looks at some sessions only: call it again. */
bool drain_is_over(struct request_context *x);

/* EVENT_RULES: refuses requests that wait for a name which the rules no longer let their sessions lock. Holds stay, and may be given back: see access.c. */

/*
 * New rules came. Steps that follow at once check sessions against them, in portions. A request that is granted before that is held as if it had been granted
 * before the rules.
 */
void revoke_waiting(struct request_context *x);
void revoke_again(struct request_context *x); /* the next portion */

/* The requests of administrators, who may end what others hold. */

/* The stores have answered a BREAK. */
void broken_answer(struct request_context *x, struct session *s, const struct pending *p);

void serve_DRAIN(struct request_context *x, struct session *s);
void serve_KILL(struct request_context *x, struct session *s);
void serve_BREAK(struct request_context *x, struct session *s);

/* Reports alarms that are due: once each, in the log and in the figures. */

/* The configuration was read, or has changed: alarms and the slow log follow it from now on, also for present holds and waits. */
void alarm_configure(struct request_context *x);
/* TIMER_ALARM */
void alarm_fired(struct request_context *x, struct timer *t);
/* TIMER_FAILURES: a second is over. */
void alarm_count_failures(struct request_context *x);

#endif
