/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the home of a rate limit is asked, and how a RATE is answered by what it says: at most so many uses of a name in any window of a length. The home
 * counts, by its own clock and in one call; nothing of it is kept here. What the limit promises ends when the home loses its memory, or its clock is set
 * forward.
 * The request itself: rate_turns.h.
 */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "daemon/core/round/home.h"
#include "daemon/core/session/request_context.h"

struct rate_use {
	int64_t limit, per, cost;
};

/* The question whether the session may have this use. Its maker sets pending or about, and asks. */
struct home_question *rate_question(struct request_context *x, const struct session *s, struct span name, const struct rate_use *use);
/* The outcome of a question of a request that does not wait is known. */
void rate_told(struct request_context *x, struct home_question *q);

/* --- of one that waits --- */

/* The home is lost, and another store is asked instead. */
bool rate_goes_on(struct request_context *x, struct home_question *q);
/* It is one use too many: it may be asked for again in so many ms. */
bool rate_is_refused(const struct home_question *q, int64_t *ret_when_ms);
/* Answers the request, whose session is there, by the outcome of q, and frees it. */
void rate_conclude(struct request_context *x, struct pending *p, struct home_question *q);

#endif
