/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests become calls of the engine, and notices become lines. command.c reads lines and serves HELLO, PING, QUIT, CANCEL; locks.c the locks;
 * query.c what only looks; deliver.c turns notices into replies and pushes.
 */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include "daemon/core/engine.h"
#include "daemon/core/session.h"

struct commander {
	struct core *core;
	struct engine *engine;
	struct session_table *sessions;
	struct request request;  /* the one being served: large, so not on the stack */
	struct mistake mistake;
};

/* One line of a session, now; p = NULL stands for one that was too long. Notices may be waiting afterwards. */
void command_line(struct commander *x, struct session *s, char *line, size_t n);

/* How a session ends (redlock-protocol(7)): at once, or with its locks left alone until their deadlines. */
enum ending {
	ENDING_CLEAN,  /* QUIT, EOF, hang-up: it does not act any more */
	ENDING_UNSURE, /* it may be alive and believe */
};
/* Withdraws, frees, forgets all claims of the session and closes it. */
void command_end_session(struct commander *x, struct session *s, enum ending how);
/* The session has sent its last line: what can be finished is, then it ends. */
void command_half_close(struct commander *x, struct session *s);

/* All notices, in order, to the sessions that they concern. */
void command_deliver(struct commander *x);

/* --- between the files of the commander --- */

void command_reply_error(struct commander *x, struct session *s, struct span tag, enum error code, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void command_mistake(struct commander *x, struct session *s, enum error code, const char *format, ...)
	__attribute__((format(printf, 4, 5))); /* of the request being served; counts towards the flood limit */
/* One handler per row of the command table: serve_LOCK serves LOCK. */
#define COMMAND(id, ...) void serve_##id(struct commander *x, struct session *s);
#include "proto/command.def"
#undef COMMAND
/* Fields of a held lock as its grant is answered: name fence valid_ms. */
void reply_grant(struct commander *x, struct reply *r, const struct lock *l);

#endif
