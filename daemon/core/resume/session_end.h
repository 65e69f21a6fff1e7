/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a session ends, or leaves its connection. A session with grace outlives the connection: what it holds stays held, its waiting LOCKs keep their places,
 * and turns and losses that its client was not told of are remembered. RESUME takes the session over on another connection. Without RESUME it ends
 * when its grace is over, or at once if too many are detached. Either way no lock is free before its client has ceased to believe.
 * See ALGORITHMS.md, Sessions.
 */
#ifndef CORE_SESSION_END_H
#define CORE_SESSION_END_H

#include "daemon/core/session/request_context.h"

/* How a session ends (redlock-protocol(7)): at once, or with its locks left alone until their deadlines. */
enum ending {
	ENDING_QUIT,   /* the client said so: as if it had unlocked all that it holds */
	ENDING_CLEAN,  /* EOF, hang-up, and no grace: the client does not act any more */
	ENDING_UNSURE, /* the client may be alive and believe */
};
/* The daemon ends: frees what sessions have outside the tables. Tells nobody. */
void session_end_all(struct request_context *x);
/* Withdraws, frees, forgets all claims of the session and closes it. */
/* It loses all that it holds. What it waits for it still waits for. */
void session_loses_all(struct request_context *x, struct session *s, enum loss why);
void session_end(struct request_context *x, struct session *s, enum ending how);
/* Its connection is gone: with grace the session is detached, else it ends. The session's pointer is dead afterwards. */
void session_end_connection(struct request_context *x, struct session *s, enum ending how);
/* Detaches a session with grace. Its grace begins. */
void leave_connection(struct request_context *x, struct session *s);

#endif
