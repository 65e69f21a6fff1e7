/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The LOCKALL or LOCKANY in flight: its names, which are marked among the holds, and what becomes of them when it is given up, or
 * when its connection broke. For sessions with grace only.
 */
#ifndef CLIENT_BUNDLE_H
#define CLIENT_BUNDLE_H

#include "client/pending.h"

/* Before the request is sent. -ENOMEM. */
int bundle_begin(struct holds *holds, const char *const *names, size_t n) REDLOCK_MUST;
/* A row of the answer. A grant counts as told with the end of the answer, as for the daemon. */
void bundle_row(struct holds *holds, const struct reply_line *row);
void bundle_given_up(struct holds *holds, const struct pending *p);

/* A name of which RESUME did not tell whether the session holds it; NULL: there is none. */
const char *bundle_undecided(const struct holds *holds, const struct pending *p);
/* It is held although not all names of its LOCKALL are: one was lost meanwhile. It is to be given back. */
bool bundle_is_torn(const struct holds *holds, const struct pending *p, const struct hold *h);

#endif
