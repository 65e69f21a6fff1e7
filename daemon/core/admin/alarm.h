/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells alarms that are due: once each, as a line of the log and in the figures. */
#ifndef CORE_ALARM_H
#define CORE_ALARM_H

#include "daemon/core/session/request_context.h"

/* The configuration was read, or has changed: alarms and the slow log are as it says from now on, also about what is held and waits already. */
void alarm_configure(struct request_context *x);
/* TIMER_ALARM */
void alarm_fired(struct request_context *x, struct timer *t);
/* TIMER_FAILURES: a second is over. */
void alarm_count_failures(struct request_context *x);

#endif
