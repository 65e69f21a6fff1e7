/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests become calls of the engine, and notices become lines. command.c reads lines and serves HELLO, PING, QUIT, CANCEL; locks.c the locks;
 * query.c and list.c what only looks; parting.c how a connection ends; resume.c sessions without a connection; deliver.c turns notices into replies and pushes; remember.c tells the journal, and
 * restore.c is told by it.
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

/* How a session ends (redlock-protocol(7)): at once, or with its locks left alone until their deadlines. */
enum ending {
	ENDING_QUIT,   /* it said so: as if it had unlocked all that it holds */
	ENDING_CLEAN,  /* EOF, hang-up: it does not act any more */
	ENDING_UNSURE, /* it may be alive and believe */
};
/* Its connection is no more: with grace it is detached, else it ends. The session's pointer is dead afterwards. */
void command_drop_session(struct commander *x, struct session *s, enum ending how);
/* Withdraws, frees, forgets all claims of the session and closes it. */
void command_end_session(struct commander *x, struct session *s, enum ending how);
/* The session has sent its last line: what can be finished is, then it ends. */
void command_half_close(struct commander *x, struct session *s);

/* The daemon stops: what this session has in flight is refused. True: there was some. */
bool command_refuse_flying(struct commander *x, struct session *s);

/* After anything was done for a session: is it over, has it said and heard all? Its pointer may be dead afterwards. */
void command_settle(struct commander *x, struct session *s);
/* TIMER_SESSION. */
void command_session_fired(struct commander *x, struct session *s);

/* RESUME waits for adoptions, and one is decided: if that was the last, it is answered. */
void command_resume_goes_on(struct commander *x, struct session *s);
/* TIMER_GRACE. */
void command_grace_over(struct commander *x, struct session *s);

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
void command_drop_pendings(struct session *s);
/* The request that is being served needs the stores: it will be answered. */
struct pending *pending_of_request(struct commander *x, struct session *s, struct lock *l);
/* Whether the session may have one more of these; false: it has been answered. */
bool pendings_within_limit(struct commander *x, struct session *s);
/* SHOW is answered: by what the daemon knows, and by what the stores said. */
void command_show(struct commander *x, struct session *s, const struct pending *p);
/* A place, or a turn that came, is kept for a session that is back and has not asked for it again for its grace, at least a lease, from now. */
void claim_bound(struct commander *x, struct claim *c);

/* A LOCK in a session that was resumed may be the repetition of one whose connection dropped. */
enum place {
	PLACE_NONE,  /* it is not: *ret_claim is unset */
	PLACE_TURN,  /* its turn has come: the claim is the holder */
	PLACE_WAITS, /* the claim waits, now for this request */
};
enum place command_old_place(struct commander *x, struct session *s, struct span owner, bool patient, struct claim **ret_claim);

/* Records of the journal, of sessions with grace. Before or after, the lines of the same step come behind them. */
void remember_session(struct commander *x, const struct session *s);
void remember_all_of(struct commander *x, const struct session *s);
void remember_over(struct commander *x, const struct session *s);
void remember_held(struct commander *x, const struct claim *c); /* by the lock's holder: from now on, so */
void remember_freed(struct commander *x, const struct claim *c);
void remember_lost(struct commander *x, const struct claim *c);

#endif
