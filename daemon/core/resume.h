/* SPDX-License-Identifier: BSD-2-Clause */
/* RESUME: a session takes over another, and a LOCK that it repeats finds its old place. See ALGORITHMS.md, Sessions. */
#ifndef CORE_RESUME_H
#define CORE_RESUME_H

#include "daemon/core/commander.h"

void serve_RESUME(struct commander *x, struct session *s);

/* RESUME waits for adoptions. If none is left, it is answered. True: it was, and notices may be waiting. */
bool resume_goes_on(struct commander *x, struct session *s);
/* TIMER_GRACE: nobody has resumed the session; or RESUME waits no longer. */
void resume_grace_over(struct commander *x, struct session *s);
/* Keeps the place or the grant of a claim, at most until then, for a session that is back and has not asked for it again. */
void claim_bound(struct commander *x, struct claim *c, struct instant until);
/* How long a session that is back has to repeat a LOCK: for its grace from now on, at least for a lease. */
struct instant resume_repeat_until(const struct commander *x, const struct session *s);

/* A LOCK in a session that was resumed may be the repetition of one whose connection dropped. */
enum place {
	PLACE_NONE,  /* it is not: *ret_claim is unset */
	PLACE_TURN,  /* it was granted meanwhile: the claim is the holder */
	PLACE_WAITS, /* the claim waits, now for this request */
};
enum place resume_old_place(struct commander *x, struct session *s, struct span owner, bool patient, struct claim **ret_claim);

#endif
