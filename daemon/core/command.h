/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests become calls of the engine, and notices become lines. command.c reads lines and serves HELLO, PING, QUIT, CANCEL; locks.c the locks;
 * query.c and list.c what only looks; hangup.c says when a session leaves its connection, and end.c how; resume.c takes it over on another; deliver.c turns
 * notices into replies and pushes; remember.c tells the journal, and restore.c is told by it.
 */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include "daemon/core/parts.h"
#include "daemon/core/journal.h"
#include "daemon/core/session.h"

struct commander {
	struct core *core;
	struct engine *engine;
	struct session_table *sessions;
	struct request request;  /* the one being served: large, so not on the stack */
	struct mistake mistake;
	struct {
		struct listings turns; /* of each session the first that is not answered */
		struct timer timer;
		struct instant next_at; /* no slice before */
	} lists;
	bool snapshot;           /* all is being told to the journal */
	bool distrusts;          /* the journal of the former life cannot be read */
};

/* One line of a session, now; p = NULL stands for one that was too long. Notices may be waiting afterwards. */
void command_line(struct commander *x, struct session *s, char *line, size_t n);

/* A record of the former life: 0, or -EBADMSG, and then nothing of it is believed any more. */
int command_restore(struct commander *x, struct span record) __attribute__((warn_unused_result));
void command_restored(struct commander *x);
/* Everything that the journal must know, as effects. */
void remember_all(struct commander *x);

/* LISTs that take more than one step: TIMER_LISTS; the session leaves its connection; the daemon stops, and they are refused. */
void command_lists_init(struct commander *x);
void command_lists_go_on(struct commander *x);
void command_drop_lists(struct commander *x, struct session *s);
bool command_lists_stop(struct commander *x); /* true: there were some */

/* All notices, in order, to the sessions that they concern. */
void command_deliver(struct commander *x);

/* --- between the files of the commander --- */

/* One handler per row of the command table: serve_LOCK serves LOCK. */
#define COMMAND(id, ...) void serve_##id(struct commander *x, struct session *s);
#include "proto/command.def"
#undef COMMAND
/* The request that is being served needs the stores: it will be answered. */
struct pending *pending_of_request(struct commander *x, struct session *s, struct lock *l);
/* Whether the session may have one more of these; false: it has been answered. */
bool pendings_within_limit(struct commander *x, struct session *s);
/* SHOW is answered: by what the daemon knows, and by what the stores said. */
void command_show(struct commander *x, struct session *s, const struct pending *p);

/* Records of the journal, of sessions with grace. Before or after, the lines of the same step come behind them. */
void remember_session(struct commander *x, const struct session *s);
void remember_all_of(struct commander *x, const struct session *s);
void remember_over(struct commander *x, const struct session *s);
void remember_held(struct commander *x, const struct claim *c); /* by the lock's holder: from now on, so */
void remember_freed(struct commander *x, const struct claim *c);
void remember_lost(struct commander *x, const struct claim *c);

#endif
