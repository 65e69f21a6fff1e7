/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a session ends, or leaves its connection. One with grace outlives the connection: what it holds stays held, what it waits for keeps its place, and
 * what it would have been told is remembered where it matters. RESUME takes it over on another connection. When nobody does, it ends as the connection did,
 * and never sooner than its client may believe.
 * See ALGORITHMS.md, Sessions.
 */
#ifndef CORE_END_H
#define CORE_END_H

#include "daemon/core/commander.h"

/* How a session ends (redlock-protocol(7)): at once, or with its locks left alone until their deadlines. */
enum ending {
	ENDING_QUIT,   /* it said so: as if it had unlocked all that it holds */
	ENDING_CLEAN,  /* EOF, hang-up: it does not act any more */
	ENDING_UNSURE, /* it may be alive and believe */
};
/* Withdraws, frees, forgets all claims of the session and closes it. */
void end_session(struct commander *x, struct session *s, enum ending how);
/* Its connection is no more: with grace the session is detached, else it ends. The session's pointer is dead afterwards. */
void end_connection(struct commander *x, struct session *s, enum ending how);
/* Detaches a session with grace. Its grace begins. */
void leave_connection(struct commander *x, struct session *s, enum ending how);

#endif
