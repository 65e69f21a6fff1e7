/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/waiters.h"

/* By when the claim is to be answered, unless a round under way answers it before. NEVER: it goes on waiting, and has a timer of its own. */
static struct instant claim_due(const struct claim *c)
{
	if (c->overdue)
		return INSTANT_PAST;
	return c->patient ? INSTANT_NEVER : instant_add(c->asking->asked_at, WAITERS_HURRY_US);
}

struct instant waiters_due(const struct contender *k)
{
	struct instant due = INSTANT_NEVER;
	unsigned left = contender_hurried(k);

	for (const struct claim *c = TAILQ_FIRST(&k->waiters); c && left > 0; c = TAILQ_NEXT(c, in_lock)) {
		left -= !c->patient || c->overdue;
		due = instant_min(due, claim_due(c));
	}
	return due;
}

bool waiters_include(const struct claim *c, enum waiters_part part, struct instant now)
{
	return part == WAITERS_ALL || (part == WAITERS_IMPATIENT && !c->patient) || !instant_before(now, claim_due(c));
}

/* Nobody is known to hold it: the stores were not asked, or did not grant. */
static enum refusal waiters_trouble(const struct contender *k)
{
	return k->entry.waits ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM;
}

enum refusal waiters_overdue_why(const struct contender *k)
{
	bool taken = k->elsewhere.known && !k->elsewhere.outdated;

	return taken || (k->elsewhere.split && !k->entry.waits) ? REFUSED_BUSY : waiters_trouble(k);
}

enum refusal waiters_timeout_why(const struct contender *k)
{
	return k->state == CONTENDER_YIELDING || k->elsewhere.known || k->elsewhere.split ? REFUSED_TIMEOUT : waiters_trouble(k);
}
