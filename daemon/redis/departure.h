/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the calls that a link has collected leave. Mostly that is the end of the loop pass. Two kinds of calls are held back for a moment, because together with
 * the next ones they cost server and daemon less:
 * - Calls behind a command that is in flight, if the server answers so soon that it must be near: they leave with its reply. A server carries out the commands of
 *   a connection one after another, so little time is lost.
 * - Releases alone: they wait for one more pass, while the calls before were followed by others at once. Clients that are done with a lock often ask for the next.
 *   A release that waits delays nobody on this host, and UNLOCK promises others no moment: redlock-protocol(7).
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
