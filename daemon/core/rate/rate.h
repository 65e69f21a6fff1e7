/* SPDX-License-Identifier: BSD-2-Clause */
/* RATE: the question to the home of a limit, and whose turn it is; how many bytes clients may store. */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "daemon/core/round/home.h"
#include "daemon/core/session/request_context.h"

/*
 * How much clients may store. Jobs and rate limits, at the store that is their home: limits.stored for all clients, and half of that for those of one peer;
 * the store counts. Names that clients hold or wait for, and in addition names that they have left, at each store: the same for all clients, and a quarter of
 * it for those of one peer; the daemon counts.
 */

#define NAMES_SHARE 4 /* one peer may have this fraction of what names may take */

/* The words at the end of each question that may store something: the peer of the session, and how many bytes all peers, and this one, may have. */
void stored_put_terms(const struct request_context *x, const struct session *s, struct buf *words);
/* Sends ERR LIMIT: the word of the store says which of the two limits is too small. */
void stored_send_full(struct request_context *x, struct session *s, struct span tag, struct span word);

/* Whether names may take this many more bytes. leaves: they may be left when their hold ends. False: the request was refused. */
bool names_have_room(struct request_context *x, struct session *s, uint64_t bytes, bool leaves);

/* All names together take so little that no peer needs to be checked. */
static inline bool names_are_few(const struct request_context *x, uint64_t bytes, bool leaves)
{
	return !leaves && x->sessions->origins.names + bytes <= x->core->conf.limits.stored / NAMES_SHARE;
}

/* Whether one more request may wait. False: it was refused. */
bool crowd_has_room(struct request_context *x, struct session *s);

/* The same for a name that is left now. */
bool kept_has_room(struct request_context *x, struct session *s, uint64_t bytes);

/*
 * The question to the home of a rate limit, and the answer to a RATE. A limit allows a number of uses of a name in any window of a given length. The home
 * counts, by its own clock and in one call; the daemon keeps nothing of it. The promise of the limit ends when the home loses its memory, or its clock is set
 * forward.
 */

struct rate_use {
	int64_t limit, per, cost;
};

/* The outcome of a question for a request without wait= is known. */
void rate_on_outcome(struct request_context *x, struct home_question *q);

/* --- with wait= --- */

/*
 * The request RATE. Requests with wait= form a line for each name, in order of arrival. The home is asked for the first only, and again only after it
 * answered that the use may be admitted. A request without wait= is sent at once, whoever waits.
 */

void serve_RATE(struct request_context *x, struct session *s);

void rate_lines_init(struct request_context *x);
void rate_lines_free_all(struct request_context *x);
/* The outcome of a question of a line is known. */
void rate_line_on_outcome(struct request_context *x, struct home_question *q);
void rate_timer_fired(struct request_context *x, struct timer *t);

/* What a turn waits for. */
struct rate_asked {
	struct span name;
	struct rate_use use;
	struct instant at, until;
};
struct rate_asked rate_turn_asks(const struct rate_turn *turn);
bool rate_turn_is_asked(const struct rate_turn *turn); /* the home may have counted it */
struct rate_turn *rate_turn_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
void rate_turn_cancel(struct request_context *x, struct rate_turn *turn);
/* Its session is gone, or has lost its connection: nothing is answered. */
void rate_turn_drop(struct request_context *x, struct rate_turn *turn);
/* The session has sent its last line: what was sent to the home already is answered, and the rest stops waiting. */
void rate_turns_finish_up(struct request_context *x, struct session *s);
/* The daemon stops, or drains: see takes_refuse(). denied: refuses only the turns that the present rules do not allow. */
bool rate_turns_refuse(struct request_context *x, struct session *s, bool denied, int64_t *left);

#endif
