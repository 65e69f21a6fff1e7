/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those who wait for a name in this daemon, in the order in which they came: questions about them, and about what keeps them waiting. wait.c acts on them.
 */
#ifndef CORE_WAITERS_H
#define CORE_WAITERS_H

#include "daemon/core/lock/notices.h"

#define WAITERS_HURRY_US SEC /* the stores are asked no longer than this for a request that does not wait */

enum waiters_part {
	WAITERS_OVERDUE,   /* claims whose wait is over; of those that do not wait, the ones that asked a second ago */
	WAITERS_IMPATIENT, /* these, and all that do not wait */
	WAITERS_ALL,
};

bool waiters_include(const struct claim *c, enum waiters_part part, struct instant now);
/* When the first of them is overdue; NEVER: all have a timer of their own. */
struct instant waiters_due(const struct contender *k);

/* Why claims do not have the lock, when the name is not ours. */
enum refusal waiters_overdue_why(const struct contender *k); /* of claims that are overdue when the name is asked for again */
enum refusal waiters_timeout_why(const struct contender *k); /* of a claim whose wait is over */

#endif
