/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/waiters.h"

/* By when it is to be answered, unless a round under way does so. One that waits has a timer of its own until then. */
static struct instant claim_due(const struct claim *c)
{
	if (c->overdue)
		return INSTANT_PAST;
	return c->patient ? INSTANT_NEVER : instant_add(c->asked_at, WAITERS_HURRY_US);
}

struct instant waiters_due(const struct lock *l)
{
	struct instant due = INSTANT_NEVER;
	struct claim *c;

	TAILQ_FOREACH(c, &l->waiters, in_lock)
	due = instant_min(due, claim_due(c));
	return due;
}

bool waiters_include(const struct claim *c, enum waiters_part part, struct instant now)
{
	return part == WAITERS_ALL || (part == WAITERS_IMPATIENT && !c->patient) || !instant_before(now, claim_due(c));
}

/* It waits until the stores have room. */
static bool lock_is_queued(const struct lock *l)
{
	return l->contender.entry.waits || l->lease.entry.waits;
}

enum refusal waiters_trouble(const struct lock *l)
{
	return lock_is_queued(l) ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM;
}

enum refusal waiters_overdue_why(const struct lock *l)
{
	bool taken = l->elsewhere.known && !l->elsewhere.outdated;

	return taken || (l->elsewhere.split && !lock_is_queued(l)) ? REFUSED_BUSY : waiters_trouble(l);
}

enum refusal waiters_timeout_why(const struct lock *l)
{
	return lock_is_taken(l) || l->elsewhere.known || l->elsewhere.split ? REFUSED_TIMEOUT : waiters_trouble(l);
}
