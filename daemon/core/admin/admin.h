/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests BREAK, DRAIN and KILL; when nobody holds anything any more; what new rules no longer allow. */
#ifndef CORE_ADMIN_H
#define CORE_ADMIN_H

#include "daemon/core/session/request_context.h"

/*
 * A drain: the daemon grants nothing new, waits until nobody holds anything, or for as long as an administrator said, and then may be stopped. Who holds
 * something goes on as before. It ends with EVENT_STOP alone, whether the drain is over or not.
 */

/* TIMER_DRAIN: it has lasted for as long as it may. */
void drain_fired(struct request_context *x);
/* drain.more: refuses more of the crowd. */
void drain_again(struct request_context *x);
/* The daemon may be stopped: it drains, and nobody has or waits for anything, or the time is over. It looks at some sessions a time: to be asked again. */
bool drain_is_over(struct request_context *x);

/* EVENT_RULES: whoever waits for a name that the rules no longer let it lock is refused. What is held stays, and may be given back: see access.c. */

/*
 * The new rules came. Sessions are judged in portions, by steps that follow at once; what gets its turn before its session is judged is held, as if it had been
 * granted right before.
 */
void revoke_waiting(struct request_context *x);
void revoke_again(struct request_context *x); /* the next portion */

/* The requests of administrators, who may end what others hold. */

/* The stores have answered a BREAK. */
void broken_answer(struct request_context *x, struct session *s, const struct pending *p);

void serve_DRAIN(struct request_context *x, struct session *s);
void serve_KILL(struct request_context *x, struct session *s);
void serve_BREAK(struct request_context *x, struct session *s);

/* Tells alarms that are due: once each, as a line of the log and in the figures. */

/* The configuration was read, or has changed: alarms and the slow log are as it says from now on, also about what is held and waits already. */
void alarm_configure(struct request_context *x);
/* TIMER_ALARM */
void alarm_fired(struct request_context *x, struct timer *t);
/* TIMER_FAILURES: a second is over. */
void alarm_count_failures(struct request_context *x);

#endif
