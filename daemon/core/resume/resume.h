/* SPDX-License-Identifier: BSD-2-Clause */
/* A session ends, loses its connection, is resumed, handed over, or restored. */
#ifndef CORE_RESUME_H
#define CORE_RESUME_H

#include "daemon/base/buf.h"
#include "daemon/core/session/request_context.h"

/*
 * How a session ends, or loses its connection. A session with grace outlives its connection: it keeps its holds, and its waiting LOCKs keep their places. It
 * remembers grants and losses that its client was not told of. RESUME takes the session over on another connection. Without RESUME the session ends when its
 * grace is over, or at once if too many are detached. In any case a lock becomes free only when its client no longer relies on it. See ALGORITHMS.md, Sessions.
 */

/* How a session ends (redlock-protocol(7)): its locks are free at once, or stay until their deadlines. */
enum ending {
	ENDING_QUIT,   /* the client ended it: as if it had unlocked all that it holds */
	ENDING_CLEAN,  /* EOF, hang-up, and no grace: the client no longer acts */
	ENDING_UNSURE, /* the client may be alive, and rely on its locks */
};
/* The daemon ends: frees what sessions have outside the tables. Sends nothing. */
void sessions_free_all(struct request_context *x);
/* It loses all that it holds. It goes on waiting for the rest. */
void session_loses_all(struct request_context *x, struct session *s, enum loss why);
/* Ends all claims of the session, and closes it. */
void session_end(struct request_context *x, struct session *s, enum ending how);
/* Its connection is gone: with grace the session is detached, else it ends. Do not use the pointer afterwards. */
void session_end_connection(struct request_context *x, struct session *s, enum ending how);

/* RESUME: a session takes over another, and a LOCK that it repeats finds its old place. See ALGORITHMS.md, Sessions. */

void serve_RESUME(struct request_context *x, struct session *s);

/* For a session that is resuming. Answers the RESUME, unless it still waits for an adoption. True: it was answered, and notices may be waiting. */
bool resume_goes_on(struct request_context *x, struct session *s);
/* TIMER_GRACE: nobody has resumed the session; or RESUME stops waiting. */
void resume_grace_over(struct request_context *x, struct session *s);

/* A restart: s has its connection again. It takes over `from`, which has the same number. It is resuming, but sends no answer. */
void resume_return(struct request_context *x, struct session *s, struct session *from);
void resume_return_end(struct request_context *x, struct session *s); /* its adoptions are counted: it continues as after RESUME */

/*
 * For sessions with groups that are ending: requests that were not repeated end without an answer, because another request of their client takes their place.
 */
void resume_end_groups(struct request_context *x, struct session *s);
/*
 * The request is a LOCK, LOCKALL or LOCKANY. Ends requests of its owner that wait for one of its names in the other mode. If it asks for a name alone, also
 * ends a shared grant of which the client does not know.
 */
void resume_make_way(struct request_context *x, struct session *s);
/* UNLOCK and RELEASE with count=: gives up what the owner has waited for since before the connection was lost, and whose answer nobody would get. */
void resume_give_up(struct request_context *x, struct session *s);

/* Whether a LOCK repeats one whose connection was lost, in a session that was resumed. */
enum place {
	PLACE_NONE,  /* it does not; *ret_claim has no meaning */
	PLACE_TURN,  /* the lock was granted meanwhile: *ret_claim holds it */
	PLACE_WAITS, /* *ret_claim waits, from now on for this request */
};
enum place resume_old_place(struct request_context *x, struct session *s, struct span owner, bool shared, bool patient, struct claim **ret_claim);

/*
 * A restart: all that the next process needs, as records (journal.h), even if it is another build. The journal has only sessions with grace, but these records
 * are of all sessions. What they wait for is handed over as lines. The next process serves these lines as if they had come when they came here. What is known
 * about the stores: membership.h.
 *
 * Some things are left out on purpose, as in a crash. They come again, or cost only a wait:
 *   votes of holds that readers share, or whose state has to be found out: they are adopted. The end of each is handed over, so that a loss is reported in
 *                 time. All other holds keep their votes: no store is asked before the next renewal
 *   names of a LOCKALL or an ACQUIRE that is not answered: they are freed, and asked for again
 *   requests whose connection was lost: they lose their place. A hold that was won for such a session is handed over
 *   calls under way: a value that one of them may have set is handed over for deletion. For others the client is told that the outcome is unknown
 *   the end of a job whose session is gone: the lease at the home expires, and the job is due again
 *   failed AUTHs: their delays begin anew. AUTHs under way are handed over with their secrets
 *   events for those who watch: they are told how many they missed
 *   RECENT, former and remote holders, alarms, figures, and rates of the memory store: they begin anew
 *
 * A daemon that drains is not restarted this way.
 */

/* Writes the records as effects, DAEMON first. It changes nothing that matters: the process may go on. */
void hand_over(struct request_context *x);
/* A client waits for an answer that depends on a store, or on a slice of a LIST, and comes soon. Such a request cannot be served again. */
bool hand_over_is_awaited(const struct request_context *x);
/* Returns the stores that PLACED counts, as text in memory of the effects. */
struct span hand_over_stores(struct core *core);

/*
 * Replays the journal of the previous run. Its sessions exist again, without connections. What they held counts as held until the stores have decided. Records
 * come in order, and each builds on those before it. After an invalid record no record is used. See ALGORITHMS.md, Adoption.
 */

/* 0; or -EBADMSG: the record is not valid, and nothing of the journal is used any more. */
int restore_record(struct request_context *x, struct span record) __attribute__((warn_unused_result));
/* That was the last record. */
void restore_end(struct request_context *x);

/*
 * After a restart sessions have their connections again. Their requests wait here until the stores are known and all holds are adopted, or for one second. The
 * outer layer reads no line until request_context.handed is NULL.
 */
struct handed {
	struct buf waiting;      /* records */
	struct buf line;         /* the result of a line whose record continues */
	struct buf tickets;      /* of struct name * */
	struct timer timer;      /* TIMER_HANDED: the next check */
	struct instant until;
	bool same_stores;
	bool same_configuration; /* … and their markers are the same */
};
/* A line to serve as if it had come at asked_at; 0: it was read ahead. session NULL: there is none. */
struct restored_line {
	struct session *session;
	struct input line;
	struct instant asked_at;
};
bool restore_may_go_on(struct request_context *x); /* the timer has fired; false: not yet, and the timer is set again */
/* False: there are no more, and x->handed is NULL. The line is valid until the next call. */
bool restore_next(struct request_context *x, struct restored_line *ret_line);
void restore_free(struct request_context *x);

#endif
