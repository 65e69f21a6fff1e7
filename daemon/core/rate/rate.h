/* SPDX-License-Identifier: BSD-2-Clause */
/* RATE: the question to the home of a limit, and whose turn it is; how many bytes clients may store. */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "daemon/core/round/home.h"
#include "daemon/core/session/request_context.h"

/*
 * What clients may have stored. Jobs and rate limits, at the store that is their home: limits.stored for all clients, and half of it for those of one peer. The
 * store counts. Names that clients hold or wait for, and besides names that they have left taken, at each store: as much for all, and a quarter of it for those
 * of one peer. The daemon counts.
 */

#define NAMES_SHARE 4 /* one peer has this part of what names may take */

/* The words that end each question that may store something: the peer of the session, and how many bytes all, and this peer, may have. */
void stored_put_terms(const struct request_context *x, const struct session *s, struct buf *words);
/* ERR LIMIT: the store has said by this word which of the two is too small. */
void tell_stored_full(struct request_context *x, struct session *s, struct span tag, struct span word);

/* Whether names may take so many bytes more. leaves: they may be left taken when their hold ends. False: the request was refused. */
bool names_have_room(struct request_context *x, struct session *s, uint64_t bytes, bool leaves);

/* All together take so little that nobody has to be asked. */
static inline bool names_are_few(const struct request_context *x, uint64_t bytes, bool leaves)
{
	return !leaves && x->sessions->origins.names + bytes <= x->core->conf.limits.stored / NAMES_SHARE;
}

/* Whether one more request may wait. False: it was refused. */
bool crowd_has_room(struct request_context *x, struct session *s);

/* The same of a name that is left taken now. */
bool kept_has_room(struct request_context *x, struct session *s, uint64_t bytes);

/*
 * What the home of a rate limit is asked, and how a RATE is answered by what it says: at most so many uses of a name in any window of a length. The home
 * counts, by its own clock and in one call; nothing of it is kept here. What the limit promises ends when the home loses its memory, or its clock is set
 * forward.
 */

struct rate_use {
	int64_t limit, per, cost;
};

/* The outcome of a question of a request that does not wait is known. */
void rate_told(struct request_context *x, struct home_question *q);

/* --- of one that waits --- */

/*
 * The request RATE. Those with wait= stand in a line for each name, in the order in which they came: the home is asked for the first alone, and again only when
 * it said that the use may be admitted. One without wait is asked at once, whoever waits.
 */

void serve_RATE(struct request_context *x, struct session *s);

void rate_lines_init(struct request_context *x);
void rate_lines_free_all(struct request_context *x);
/* The outcome of a question of a line is known. */
void rate_line_told(struct request_context *x, struct home_question *q);
void rate_timer_fired(struct request_context *x, struct timer *t);

/* What it waits for. */
struct rate_asked {
	struct span name;
	struct rate_use use;
	struct instant at, until;
};
struct rate_asked rate_turn_asks(const struct rate_turn *turn);
bool rate_turn_is_asked(const struct rate_turn *turn); /* the home may have counted it */
struct rate_turn *rate_turn_waiting(const struct session *s, struct span tag); /* under this tag, which is not empty; NULL: none */
void rate_turn_cancel(struct request_context *x, struct rate_turn *turn);
/* Its session has gone, or has lost its connection: nobody is answered. */
void rate_turn_drop(struct request_context *x, struct rate_turn *turn);
/* The session has sent its last line: what the home is asked about already is answered, and nothing else waits on. */
void rate_turns_finish_up(struct request_context *x, struct session *s);
/* The daemon stops, or drains: as takes_refuse(). */
bool rate_turns_refuse(struct request_context *x, struct session *s, int64_t *left);
/* Those that the rules as they are now do not allow; likewise. */
bool rate_turns_revoke(struct request_context *x, struct session *s, int64_t *left);

#endif
