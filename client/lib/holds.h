/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session with grace holds: its locks, each with its name, fence and count as the answers told them; and the jobs of which it has asked nothing yet.
 * Locks with an owner, and locks taken by redlock_request, are not tracked.
 */
#ifndef CLIENT_HOLDS_H
#define CLIENT_HOLDS_H

#include "client/lib/request.h"
#include <sys/queue.h>

enum hold_state {
	HOLD_ASKED, /* its LOCK, LOCKALL or LOCKANY is in flight, or was given up and may have been granted */
	HOLD_HELD,  /* an answer granted it, and nothing since has told of its loss */
	HOLD_LOST,  /* RESUME did not bring it back; until an UNLOCK is told so, or a LOCK takes it anew */
};

struct hold {
	LIST_ENTRY(hold) next;
	enum hold_state state;
	bool seen;           /* a row of this RESUME told of it, or a CHECK asked for it since */
	const char *reason;  /* LOST: evicted or expired; NULL once a push has told the loss */
	int64_t loss_told;   /* the fence of that push; after RESUME the daemon tells this loss, too, even if the name is held again by then; 0: none */
	bool shared, permit; /* how it is held */
	bool unsettled;      /* a LOCK was given up, so an UNLOCK is to tell the daemon how often it is held */
	bool unlock_open;    /* an UNLOCK was given up, and the caller has not called it again: the daemon may count one less */
	bool asked;          /* the request in flight asks for it: these are the first of all, its last name before the others */
	bool told;           /* … and the answer to it, or a row of that, granted it */
	int64_t fence, until_us;
	int64_t count; /* how often the caller believes it holds the lock */
	char name[NAME_MAX_BYTES + 1];
};

struct holds { /* zeroes: none */
	LIST_HEAD(, hold) all;
	void *by_name; /* the same as a tree of tsearch(3) */
	bool unsettled; /* one of them may be */
};

void holds_release(struct holds *holds);
struct hold *holds_find(const struct holds *holds, struct span name);
/* Before a LOCK, LOCKALL or LOCKANY is sent, so that a grant is never lost to a lack of memory. -ENOMEM. */
int holds_ask(struct holds *holds, const char *const *names, size_t n) REDLOCK_MUST;

/* --- tracking --- */

/*
 * Follows what answers, pushes and the rows of RESUME tell about the locks of a session, and so finds the locks that RESUME did
 * not bring back. A lock that was found to be lost keeps its reason until tracking_loss has told it.
 */
/* After a row of the answer to p. A grant counts with the end of the answer, as for the daemon. */
void tracking_told(struct holds *holds, const struct pending *p, const struct reply_line *row);
/* After the answer to p. */
void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer);
/* After a push. False: it tells a loss that was told already. */
bool tracking_push(struct holds *holds, const struct reply_line *push);

/* Before RESUME is sent. */
void tracking_resume(struct holds *holds);
/* A row of its answer, or the OK to a CHECK after it; asked_us was read before RESUME or CHECK was sent. */
void tracking_row(struct holds *holds, const struct reply_line *row, int64_t asked_us);
/* After the rows of RESUME, or when the session is gone: a lock without a row is lost for this reason, unless it is being unlocked. */
void tracking_end(struct holds *holds, const struct pending *p, const char *reason);
/* RESUME has left out rows. A lock without one, for which CHECK is to be asked; NULL: there is none. */
const char *tracking_unseen(const struct holds *holds);
/* That CHECK was answered. A lock that the stores have not confirmed yet is believed until its old until_us, and no longer. */
void tracking_checked(struct holds *holds, const struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us);
/* Whether the lock of this request was found to be lost, so that the answer is known. */
bool tracking_knows_loss(const struct holds *holds, const struct pending *p);
/* That answer was given: an UNLOCK that is told so forgets the loss. */
void tracking_loss_acknowledged(struct holds *holds, const struct pending *p);
/* Drafts the push that tells the loss of h. The loss is told then. */
void tracking_loss(struct hold *h, struct draft *d);

/* --- the count --- */

/*
 * Requests that take and free locks say by count= how often the session is to hold them afterwards. So each can be sent again over the next connection,
 * whatever became of the first, and a call that was given up is undone, or done, by saying what its caller knows of.
 */
/* Drafts the request in flight as it is to be sent now, with its count, which is noted. holds: NULL says no count. */
void count_field_draft(const struct holds *holds, struct pending *p, struct draft *d);
/* It was refused for its count, since a lock was lost before it arrived: it is sent again with the count of now. */
bool count_field_is_outdated(const struct holds *holds, const struct pending *p, const struct reply_line *answer);

/* The caller gives up the request in flight, which may have been done. */
void count_field_give_up(struct holds *holds, const struct pending *p);
/* A LOCK was granted, and its caller is told that there is no grant. False: that lock is not held. */
bool count_field_refuse(struct holds *holds, const char *name);
/* RESUME was answered. A request that cannot say its count is sent again once its locks are settled. */
void count_field_resume(struct holds *holds, const struct pending *p);

/* A lock that the session may hold more often than its caller knows of; NULL: none. A request in flight that says its count settles its locks itself. */
const struct hold *count_field_unsettled(struct holds *holds, const struct pending *p);
/* Drafts the UNLOCK that settles it. */
void count_field_settle(const struct hold *h, struct draft *d);
/* That UNLOCK was answered. */
void count_field_settled(struct holds *holds, const char *name);

/* --- unchecked jobs --- */

/*
 * The jobs that a session with grace was given and has asked nothing about yet. After RESUME the daemon answers TAKE first with such a job, for it cannot know
 * whether the client has heard of it. So recovery.h asks CHECK for each before anything else: a client never gets a job twice.
 */
struct unchecked_job {
	LIST_ENTRY(unchecked_job) next;
	bool asked;    /* the request about it was sent */
	bool given_up; /* its caller never got it: if the session has it still, it is given back … */
	bool returns;  /* … which it does: RETRY is next */
	struct span queue, id;
	char text[]; /* of both */
};

LIST_HEAD(unchecked_jobs, unchecked_job);

/* After any OK: of TAKE it tells a job, of CHECK, DONE and RETRY that the daemon knows now. -ENOMEM. */
int unchecked_jobs_answer(struct unchecked_jobs *all, const struct reply_line *answer) REDLOCK_MUST;
/* A push may tell that one is lost. */
void unchecked_jobs_push(struct unchecked_jobs *all, const struct reply_line *push);
/* The caller does not get this job after all: it is given back after the next RESUME. */
void unchecked_jobs_give_up(struct unchecked_jobs *all, const char *queue, const char *id);

/* Before RESUME is sent. */
void unchecked_jobs_resume(struct unchecked_jobs *all);
/* The request about the next job, with RESUME answered. False: there is none. */
bool unchecked_jobs_ask(struct unchecked_jobs *all, struct draft *d);
/* That request was answered: whatever the answer, the daemon knows now. */
void unchecked_jobs_asked(struct unchecked_jobs *all, bool ok);
/* The session is gone, or the connection is closed. */
void unchecked_jobs_release(struct unchecked_jobs *all);

#endif
