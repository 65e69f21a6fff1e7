/* SPDX-License-Identifier: BSD-2-Clause */
/* RESUME: a session takes over another, and a LOCK that it repeats finds its old place. See ALGORITHMS.md, Sessions. */
#ifndef CORE_RESUME_H
#define CORE_RESUME_H

#include "daemon/core/session/request_context.h"

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

#endif
