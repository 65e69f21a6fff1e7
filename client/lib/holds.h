/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session with grace holds: its locks, with names, fences and counts from the answers; and its jobs of which it has asked nothing yet. Locks
 * with an owner, and locks that redlock_request has taken, are not tracked.
 */
#ifndef CLIENT_HOLDS_H
#define CLIENT_HOLDS_H

#include "client/lib/request.h"
#include <sys/queue.h>

enum hold_state {
	HOLD_ASKED, /* its LOCK, LOCKALL or LOCKANY is in flight, or was given up and may have been granted */
	HOLD_HELD,  /* an answer granted it, and no loss was reported since */
	HOLD_LOST,  /* RESUME did not restore it. It stays until an UNLOCK has returned the loss, or a LOCK takes the name again */
};

struct hold {
	LIST_ENTRY(hold) next;
	enum hold_state state;
	bool seen;           /* the answer to this RESUME had a row for it, or a CHECK after it was answered */
	const char *reason;  /* in HOLD_LOST: evicted or expired; NULL once a push has reported the loss */
	int64_t loss_reported; /* the fence of that push; 0: none. After RESUME the daemon reports this loss, too, even if the name is held again by then */
	bool shared, permit; /* how it is held */
	bool count_unsure;   /* a LOCK was given up, so an UNLOCK must set the count at the daemon */
	bool unlock_open;    /* an UNLOCK was given up and not called again: the count of the daemon may be one less */
	bool asked;          /* the request in flight asks for it; such holds come first in `all`, in the reverse order of the names */
	bool row_granted;    /* … and the answer to it, or a row of that, has granted it */
	int64_t fence, until_us;
	int64_t count; /* how many times the caller holds the lock, as far as it knows */
	char name[NAME_MAX_BYTES + 1];
};

struct holds { /* zeroes: none */
	LIST_HEAD(, hold) all;
	void *by_name; /* the same holds, as a tree of tsearch(3) */
	bool count_unsure; /* a hold may have a count that is unsure */
};

void holds_release(struct holds *holds);
struct hold *holds_find(const struct holds *holds, struct span name);
/* Call it before a LOCK, LOCKALL or LOCKANY is sent, so that a grant is never lost for lack of memory. -ENOMEM. */
int holds_ask(struct holds *holds, const char *const *names, size_t n) REDLOCK_MUST;

/* --- tracking --- */

/*
 * Follows answers, pushes and the rows of RESUME, and so finds the locks that RESUME did not restore. A lost lock keeps its reason until
 * tracking_loss has reported it.
 */
/* Call it after a row of the answer to p. The grant counts once the answer has ended, as it does for the daemon. */
void tracking_grant_row(struct holds *holds, const struct pending *p, const struct reply_line *row);
/* Call it after the answer to p. */
void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer);
/* Call it after a push. False: it reports a loss that was reported already. */
bool tracking_push(struct holds *holds, const struct reply_line *push);

/* Call it before RESUME is sent. */
void tracking_resume(struct holds *holds);
/* Call it for each row of the answer to RESUME, and for an OK to a CHECK after it. asked_us was read before RESUME or CHECK was sent. */
void tracking_row(struct holds *holds, const struct reply_line *row, int64_t asked_us);
/* Call it after the rows of RESUME, or when the session is gone. A lock without a row is lost for this reason, unless it is being unlocked. */
void tracking_end(struct holds *holds, const struct pending *p, const char *reason);
/* For an answer to RESUME that has left out rows: returns a lock without a row, which needs a CHECK. NULL: there is none. */
const char *tracking_unseen(const struct holds *holds);
/* Call it after the answer to that CHECK. A lock that the stores have not confirmed yet is valid until its old until_us, and no longer. */
void tracking_checked(struct holds *holds, const struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us);
/* Whether the lock of this request was found to be lost. If so, the answer is known. */
bool tracking_knows_loss(const struct holds *holds, const struct pending *p);
/* Call it after that answer. An UNLOCK that got it makes the library forget the loss. */
void tracking_loss_acknowledged(struct holds *holds, const struct pending *p);
/* Drafts the push that reports the loss of h. */
void tracking_loss(struct hold *h, struct draft *d);

/* --- the count --- */

/*
 * Requests that take or free locks state in count= how often the session shall hold the lock afterwards. So each can be sent again over the next
 * connection, whether or not the daemon has done the first one. A call that was given up is undone, or completed, by sending the count that its
 * caller knows.
 */
/* Drafts the request in flight as it must be sent now, and notes its count. With NULL for holds it has no count. */
void count_field_draft(const struct holds *holds, struct pending *p, struct draft *d);
/* Whether the request was refused for its count, because a lock was lost before it arrived. It is then sent again with the current count. */
bool count_field_is_outdated(const struct holds *holds, const struct pending *p, const struct reply_line *answer);

/* The caller gives up the request in flight, which the daemon may have done. */
void count_field_give_up(struct holds *holds, const struct pending *p);
/* A LOCK was granted, but its call returns an error. False: the session does not hold that lock. */
bool count_field_refuse(struct holds *holds, const char *name);
/* Call it after the answer to RESUME. A request that cannot have a count is sent again once its locks are settled. */
void count_field_resume(struct holds *holds, const struct pending *p);

/* Returns a lock that the session may hold more often than its caller knows; NULL: none. A request in flight with a count settles its own locks. */
const struct hold *count_field_next_unsure(struct holds *holds, const struct pending *p);
/* Drafts the UNLOCK that settles h. */
void count_field_draft_unlock(const struct hold *h, struct draft *d);
/* Call it after the answer to that UNLOCK. */
void count_field_corrected(struct holds *holds, const char *name);

/* --- unchecked jobs --- */

/*
 * The jobs that a session with grace was given, and about which it has sent no request yet. After RESUME the daemon answers TAKE with such a job
 * first, because it cannot know whether the client got it. So recovery.h sends CHECK for each of them before anything else. A client never gets a job
 * twice.
 */
struct unchecked_job {
	LIST_ENTRY(unchecked_job) next;
	bool asked;    /* the request about it was sent */
	bool given_up; /* its caller never got it: if the session still has it, it is given back … */
	bool returns;  /* … and it still has it: RETRY is next */
	struct span queue, id;
	char text[]; /* queue and id */
};

LIST_HEAD(unchecked_jobs, unchecked_job);

/* Call it after any OK. An OK to TAKE adds a job. After an OK to CHECK, DONE or RETRY the daemon knows that the client got it. -ENOMEM. */
int unchecked_jobs_answer(struct unchecked_jobs *all, const struct reply_line *answer) REDLOCK_MUST;
/* Call it after a push, which may report that a job is lost. */
void unchecked_jobs_push(struct unchecked_jobs *all, const struct reply_line *push);
/* The caller does not get this job after all. It is given back after the next RESUME. */
void unchecked_jobs_give_up(struct unchecked_jobs *all, const char *queue, const char *id);

/* Call it before RESUME is sent. */
void unchecked_jobs_resume(struct unchecked_jobs *all);
/* Drafts the request about the next job, after RESUME. False: there is none. */
bool unchecked_jobs_ask(struct unchecked_jobs *all, struct draft *d);
/* Call it after the answer to that request. ok: it was OK. */
void unchecked_jobs_asked(struct unchecked_jobs *all, bool ok);
/* Call it when the session is gone or the connection is closed. */
void unchecked_jobs_release(struct unchecked_jobs *all);

#endif
