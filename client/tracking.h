/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracking: what answers, pushes and the rows of RESUME tell about the locks of a session. Only so can be said what RESUME did not bring back.
 * A loss that is found stands in its hold with a reason, until somebody tells it.
 */
#ifndef CLIENT_TRACKING_H
#define CLIENT_TRACKING_H

#include "client/pending.h"

/* ERR LOST, ERR NOTHELD. */
bool tracking_says_lost(const struct reply_line *line);
/* After the answer to p. */
void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer);
/* After a push. False: it tells a loss that was told already. */
bool tracking_push(struct holds *holds, const struct reply_line *push);

/* Before RESUME is sent. */
void tracking_resume(struct holds *holds, struct pending *p);
/* A row of its answer, or the OK to a CHECK behind it; asked_us was read before that was sent. */
void tracking_row(struct holds *holds, struct pending *p, const struct reply_line *row, int64_t asked_us);
/* The end of RESUME, or of the session: what no row told of is lost by this reason, or given back, or was unlocked. */
void tracking_end(struct holds *holds, struct pending *p, const char *reason);
/* A CHECK behind RESUME was answered. What is not decided even so is believed for as long as it was before, and no longer. */
void tracking_checked(struct holds *holds, struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us);
/* The push that tells the loss of h, into out; once. */
size_t tracking_loss(struct hold *h, char out[REPLY_MAX]);

#endif
