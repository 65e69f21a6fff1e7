/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the loop gets to its next pass. Usually it sleeps until there is an event. While one event follows another at once, it polls for a moment instead: to put
 * a processor to sleep and wake it costs more than the work of a pass, above all in a virtual machine. Between polls it yields the processor to other
 * processes. A yield that took long means that somebody else is computing. Then the loop sleeps for a while, which keeps it in the scheduler's favour. Pure.
 * Not thread-safe.
 */
#ifndef DAEMON_REST_H
#define DAEMON_REST_H

#include "daemon/base/instant.h"

#include <stdbool.h>

struct rest {
	struct instant ended; /* the last pass that had events */
	unsigned quick;       /* passes in a row that came at once */
	struct instant no_yield_until;
};

void rest_init(struct rest *r);
void rest_note_pass(struct rest *r, struct instant begun, struct instant ended); /* a pass with events; begun: its first event */

/* Whether the loop polls, instead of sleeping. Ask at the end of each pass. */
bool rest_polls(struct rest *r, struct instant now);

bool rest_may_yield(const struct rest *r, struct instant now);
void rest_note_yield(struct rest *r, struct instant before, struct instant after);

#endif
