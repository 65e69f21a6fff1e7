/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the calls that a link has collected leave. Mostly that is the end of the loop pass. Two kinds of calls are held back for a moment, because they cost
 * server and daemon less together with the next ones:
 * - Calls behind a command in flight, if the server is near: they leave with its reply. A server carries out the commands of a connection one after another, so
 *   little time is lost.
 * - Releases alone, if the ones before were followed by another call at once: they wait for one more pass. A client that frees a lock often asks for the next.
 *   Others on this host wait in the daemon, and UNLOCK promises no moment to those on other hosts: redlock-protocol(7).
 * Pure. Not thread-safe.
 */
#ifndef REDIS_DEPARTURE_H
#define REDIS_DEPARTURE_H

#include "daemon/base/instant.h"

#include <stdbool.h>

struct departure {
	bool urgent;            /* a call is collected that is no release */
	bool waited;            /* what is collected waits for a second pass already */
	unsigned followed;      /* times in a row that releases which left or waited alone were followed by a call at once */
	struct instant alone;   /* when the last releases left alone or began to wait; INSTANT_NEVER: their successor has come */
	int64_t least_us[2];    /* the shortest times from a command to its reply: in the block of replies before, and in this one */
	unsigned replies;       /* of this block */
};

enum departs {
	DEPARTS_NOW,
	DEPARTS_WITH_REPLY, /* not before the command in flight is answered */
	DEPARTS_NEXT_PASS,
};

void departure_init(struct departure *d);
void departure_collect(struct departure *d, bool release);
void departure_reply(struct departure *d, int64_t us); /* a reply came so long after its command was sent */

/* At the end of a pass, if a call is collected. flying: a command is in flight. At DEPARTS_NOW the caller sends all that is collected. */
enum departs departure_decide(struct departure *d, struct instant now, bool flying);

#endif
