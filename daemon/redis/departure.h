/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the calls that a link has collected leave: at the end of the loop pass. Only releases alone may wait for one more pass, if the ones before were followed
 * by another call at once: a client that frees a lock often asks for the next, and one call for both costs server and daemon little more than one of the two.
 * Others on this host wait in the daemon, and UNLOCK promises no moment to those on other hosts: redlock-protocol(7).
 * Pure. Not thread-safe.
 */
#ifndef REDIS_DEPARTURE_H
#define REDIS_DEPARTURE_H

#include "daemon/base/instant.h"

#include <stdbool.h>

struct departure {
	bool urgent;          /* a call is collected that is no release */
	bool waited;          /* what is collected waits for a second pass already */
	unsigned followed;    /* times in a row that releases which left or waited alone were followed by a call at once */
	struct instant alone; /* when the last releases left alone or began to wait; INSTANT_NEVER: their successor has come */
};

void departure_init(struct departure *d);
void departure_collect(struct departure *d, bool release);

/* At the end of a pass, if a call is collected. True: the caller sends all that is collected. False: all of it waits for the next pass. */
bool departure_is_due(struct departure *d, struct instant now);

#endif
