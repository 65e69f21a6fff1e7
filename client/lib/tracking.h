/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows what answers, pushes and the rows of RESUME tell about the locks of a session, and so finds the locks that RESUME did
 * not bring back. A lock that was found to be lost keeps its reason until tracking_loss has told it.
 */
#ifndef CLIENT_TRACKING_H
#define CLIENT_TRACKING_H

#include "client/lib/pending.h"

/* ERR LOST, ERR NOTHELD. */
bool tracking_says_lost(const struct reply_line *line);
/* After the answer to p. */
void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer);
/* After a push, with p in flight or answered. False: the push tells a loss that was told already. */
bool tracking_push(struct holds *holds, const struct pending *p, const struct reply_line *push);

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
/* Writes the push that tells the loss of h into out, and returns its length. The loss is told then. */
size_t tracking_loss(struct hold *h, char out[REPLY_MAX]);

#endif
