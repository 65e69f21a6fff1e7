/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs that a session with grace was given and has asked nothing about yet. After RESUME the daemon answers TAKE first with such a job, for it cannot know
 * whether the client has heard of it. So recovery.h asks CHECK for each before anything else: a client never gets a job twice.
 */
#ifndef CLIENT_UNCHECKED_JOBS_H
#define CLIENT_UNCHECKED_JOBS_H

#include "client/lib/draft.h"
#include "proto/proto.h"

#include <sys/queue.h>

struct unchecked_job {
	LIST_ENTRY(unchecked_job) next;
	bool unsure;   /* RESUME was sent since, and CHECK is not answered yet */
	bool asked;    /* the request about it was sent */
	bool given_up; /* its caller never got it: if the session has it still, it is given back … */
	bool returns;  /* … which it does: RETRY is next */
	size_t queue_n, id_n;
	char text[]; /* the queue, and the id */
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
