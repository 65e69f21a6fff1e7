/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a request whose connection broke. It is sent again where that does no harm; else it is answered from what
 * RESUME told. Its wait stays what the caller asked for.
 */
#ifndef CLIENT_REPEAT_H
#define CLIENT_REPEAT_H

#include "client/pending.h"

enum repeat {
	REPEAT_SEND, /* its line is to be sent */
	REPEAT_DONE, /* it was done: the answer is the one that the daemon gave or would have given */
	REPEAT_LOST, /* its lock is lost, and the answer says so; an UNLOCK that is told so forgets the loss */
};

struct repeat_answer {
	size_t n;
	char line[REPLY_MAX];
};

/* Before p is sent for the first time: a loss, or an UNLOCK that was given up and has counted, needs no daemon. */
enum repeat repeat_known(const struct holds *holds, const struct pending *p, struct repeat_answer *ret_answer) REDLOCK_MUST;
/* Over the same connection, after an answer that did not end the request (pending_goes_on). May change the line. */
enum repeat repeat_later(const struct holds *holds, struct pending *p, int64_t now,
			 struct repeat_answer *ret_answer) REDLOCK_MUST;
/* Over a new connection, after RESUME. May change the line that is to be sent, and p->sent_us. */
enum repeat repeat_resumed(const struct holds *holds, struct pending *p, int64_t now,
			   struct repeat_answer *ret_answer) REDLOCK_MUST;

/* After RESUME: whether p, which asks for this lock, was granted it, though no answer told so. */
bool repeat_was_granted(const struct hold *h, const struct pending *p);
/* Likewise all names of the LOCKALL. */
bool repeat_has_all(const struct holds *holds, const struct pending *p);

#endif
