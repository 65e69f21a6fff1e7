/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request RATE. Those with wait= stand in a line for each name, in the order in which they came: the home is asked for the first alone, and again only when
 * it said that the use may be admitted. One without wait is asked at once, whoever waits.
 */
#ifndef CORE_RATE_TURNS_H
#define CORE_RATE_TURNS_H

#include "daemon/core/rate/rate.h"

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
