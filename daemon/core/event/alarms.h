/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alarms that are set: one for each hold, and for each request that waits, as long as the configuration asks for alarms of that kind. Each has a timer of its
 * own, so nobody looks through all locks. Where no alarm is configured there is nothing here, and a lock costs nothing. alarm.c tells those that are due.
 */
#ifndef CORE_ALARMS_H
#define CORE_ALARMS_H

#include "daemon/base/map.h"
#include "daemon/base/pool.h"
#include "daemon/core/event/core.h"

enum alarm_kind { ALARM_HELD, ALARM_WAITED };

/* What it is about. Its address is the key. */
enum alarm_of {
	ALARM_OF_CLAIM,  /* struct claim, of a client */
	ALARM_OF_PERMIT, /* struct permit */
	ALARM_OF_GROUP,  /* struct session, the agent of a group that waits: a group waits for one name after the other, and is told once */
};

struct alarm {
	struct map_node node;
	struct timer timer; /* set until it is told */
	const void *about;
	enum alarm_of of;
	enum alarm_kind kind;
	bool told;
};

#define ALARM_SECONDS 60 /* over which LOCKs that failed are counted */

struct alarms {
	struct map map;
	struct pool pool;
	/* What METRIC_FAILURES and all LOCKs that were answered came to, at the end of each of the last seconds. */
	struct {
		struct timer timer; /* each second, if alarm.failures is set */
		int64_t failed[ALARM_SECONDS], answered[ALARM_SECONDS];
		unsigned next;      /* the oldest */
		bool told;          /* the share is above the bound, and was before */
	} failures;
};

/* Makes core.alarms if the configuration asks for any, and frees it if not. */
void alarms_configure(struct core *c);
void alarms_free(struct core *c);

/* It holds, or waits, since then. What was told is not told again. In place of an alarm of the other kind. */
void alarms_set(struct core *c, enum alarm_of of, const void *about, enum alarm_kind kind, struct instant since);
/* There is no such thing any more. */
void alarms_drop(struct core *c, const void *about);
/* After how long it is told; 0: never. */
int64_t alarms_after_us(const struct core *c, enum alarm_kind kind);
bool alarms_told(const struct core *c, const void *about, enum alarm_kind kind);

static inline void alarms_forget(struct core *c, const void *about)
{
	if (c->alarms)
		alarms_drop(c, about);
}

#endif
