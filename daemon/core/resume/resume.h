/* SPDX-License-Identifier: BSD-2-Clause */
/* A session ends, leaves its connection, comes back, is handed over, is restored. */
#ifndef CORE_RESUME_H
#define CORE_RESUME_H

#include "daemon/base/buf.h"
#include "daemon/core/session/request_context.h"

/*
 * How a session ends, or leaves its connection. A session with grace outlives the connection: what it holds stays held, its waiting LOCKs keep their places,
 * and turns and losses that its client was not told of are remembered. RESUME takes the session over on another connection. Without RESUME it ends
 * when its grace is over, or at once if too many are detached. Either way no lock is free before its client has ceased to believe.
 * See ALGORITHMS.md, Sessions.
 */

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

/* RESUME: a session takes over another, and a LOCK that it repeats finds its old place. See ALGORITHMS.md, Sessions. */

void serve_RESUME(struct request_context *x, struct session *s);

/* Of a session that is resuming: answers the RESUME, if no adoption is left that it waits for. True: it was answered, and notices may be waiting. */
bool resume_goes_on(struct request_context *x, struct session *s);
/* TIMER_GRACE: nobody has resumed the session; or RESUME waits no longer. */
void resume_grace_over(struct request_context *x, struct session *s);

/* A restart: the session has its connection again, and all that `from` has, of the same number. It is resuming, and tells nobody so. */
void resume_return(struct request_context *x, struct session *s, struct session *from);
void resume_return_end(struct request_context *x, struct session *s); /* its adoptions are counted: it goes on as after RESUME */

/* Where groups are ending: requests that were not repeated end, without an answer. Another one of their client takes their place. */
void resume_end_groups(struct request_context *x, struct session *s);
/* Ends those of the owner that wait in the other mode for a name of the request, which is a LOCK, LOCKALL or LOCKANY; and a turn to read, if it asks for the
 * name alone. */
void resume_make_way(struct request_context *x, struct session *s);
/* UNLOCK and RELEASE with count=: what the owner waits for since before a cut, and nobody would hear of, is given up. */
void resume_give_up(struct request_context *x, struct session *s);

/* A LOCK in a session that was resumed may be the repetition of one whose connection dropped. */
enum place {
	PLACE_NONE,  /* it is not: *ret_claim means nothing */
	PLACE_TURN,  /* it was granted meanwhile: the claim is the holder */
	PLACE_WAITS, /* the claim waits, now for this request */
};
enum place resume_old_place(struct request_context *x, struct session *s, struct span owner, bool shared, bool patient, struct claim **ret_claim);

/*
 * A restart: all that the next process needs to go on, as records (journal.h), whichever build it is. What the journal has of sessions with grace there is of
 * all sessions; and what they wait for, as lines, which are served again as if they had come when they came here. What was seen of the stores:
 * membership.h.
 *
 * Left behind on purpose, as in a crash, because it comes again, or costs a wait at most:
 *   votes of holds that readers share, or about which something is to be found out   they are adopted; the end that each had is handed over, so that a loss
 *                   is told in time. All other holds go on with their votes: no store is asked before the next renewal
 *   names of a LOCKALL or an ACQUIRE that is not answered   they are freed, and asked for again
 *   requests whose connection dropped   they have lost their place; a hold that was won for such a session is handed over
 *   calls under way    a value that one of them may have set is handed over as one to be deleted; of others the client hears that the outcome is not known
 *   the end of a job whose session is gone   the lease of the home ends, and the job is due again
 *   failed AUTHs    their delays begin anew, and AUTHs under way are asked again, with their secrets
 *   events for those who watch   they hear how many were missed
 *   RECENT, former and remote holders, alarms, figures, and rates of the memory store   they begin anew
 * A daemon that drains is not restarted so.
 */

/* The records, as effects: DAEMON first. It changes nothing of note: the process may go on all the same. */
void hand_over(struct request_context *x);
/* A client waits for what a store, or a slice of a LIST, is about to answer: such a request cannot be served again. */
bool hand_over_is_awaited(const struct request_context *x);
/* The stores that PLACED counts, as a text in memory of the effects. */
struct span hand_over_stores(struct core *core);

/*
 * Replays the journal of the previous run. Its sessions are there again, without connections, and what they held counts as held until the stores have
 * decided. Records come in order, and each builds on those before it. After a record that makes no sense none is believed.
 * See ALGORITHMS.md, Adoption.
 */

/* 0; or -EBADMSG: the record makes no sense, and nothing of the journal is believed any more. */
int restore_record(struct request_context *x, struct span record) __attribute__((warn_unused_result));
/* That was the last record. */
void restore_end(struct request_context *x);

/*
 * In a restart sessions have their connections again, and what they asked for waits here until the stores have said who they are and all holds are adopted, or
 * until a second has passed. The outer layer reads no line before request_context.handed is NULL.
 */
struct handed {
	struct buf waiting;      /* records */
	struct buf line;         /* what came of a line whose record goes on */
	struct buf tickets;      /* of struct name * */
	struct timer timer;      /* TIMER_HANDED: the next look */
	struct instant until;
	bool same_stores;
	bool same_configuration; /* … and markers are the same */
};
/* A line that is to be served as if it had come at asked_at; 0: it was read ahead. session NULL: there is none. */
struct restored_line {
	struct session *session;
	struct input line;
	struct instant asked_at;
};
bool restore_may_go_on(struct request_context *x); /* the timer has fired; false: not yet, and it is set again */
/* False: that was all, and x->handed is NULL. The line is valid until the next call. */
bool restore_next(struct request_context *x, struct restored_line *ret_line);
void restore_free(struct request_context *x);

#endif
