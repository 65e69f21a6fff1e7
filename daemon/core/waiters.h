/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those who wait for a name in this daemon, in the order in which they came: questions about them, and about what keeps them waiting. wait.c acts on them.
 */
#ifndef CORE_WAITERS_H
#define CORE_WAITERS_H

#include "daemon/core/notices.h"

#define WAITERS_HURRY_US SEC /* a request that does not wait for a holder is asked for no longer than that */

enum waiters_part {
	WAITERS_OVERDUE,   /* whose wait is over already; of those that do not wait, who asked a second ago */
	WAITERS_IMPATIENT, /* and all that do not wait */
	WAITERS_ALL,
};

bool waiters_include(const struct claim *c, enum waiters_part part, struct instant now);
/* When the first of them is overdue; NEVER: all have a timer of their own. */
struct instant waiters_due(const struct contender *k);

/* Why they do not have it, when the name is not ours. */
enum refusal waiters_overdue_why(const struct contender *k); /* of those that are overdue when it is asked for again */
enum refusal waiters_timeout_why(const struct contender *k); /* of one whose wait is over */

#endif
