/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the calls that a link has collected leave: at the end of the loop pass. Only a collection of nothing but releases may wait for one more pass, if the
 * previous ones were followed by another call at once. A client that frees a lock often asks for the next, and one call for both costs server and daemon little
 * more than one of the two. Waiters on this host are in the daemon, and UNLOCK promises no exact time to waiters on other hosts: redlock-protocol(7). Pure. Not
 * thread-safe.
 */
#ifndef REDIS_DEPARTURE_H
#define REDIS_DEPARTURE_H

#include "daemon/base/instant.h"

#include <stdbool.h>

struct departure {
	bool urgent;          /* a call is collected that is no release */
	bool waited;          /* the collected calls have already waited for one pass */
	unsigned followed;    /* times in a row that another call followed at once after releases that left or waited alone */
	struct instant alone; /* when the last releases left alone or began to wait; INSTANT_NEVER: another call has followed */
};

void departure_init(struct departure *d);
void departure_collect(struct departure *d, bool release);

/* At the end of a pass, if a call is collected. True: the caller sends all collected calls. False: all of them wait for the next pass. */
bool departure_is_due(struct departure *d, struct instant now);

#endif
