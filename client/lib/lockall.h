/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The LOCKALL or LOCKANY in flight: its names, which are marked among the holds, and its rows. For sessions with grace only.
 */
#ifndef CLIENT_LOCKALL_H
#define CLIENT_LOCKALL_H

#include "client/lib/pending.h"

/* Before the request is sent. -ENOMEM. */
int lockall_begin(struct holds *holds, const char *const *names, size_t n) REDLOCK_MUST;
/* A row of the answer. A grant counts as told with the end of the answer, as for the daemon. */
void lockall_row(struct holds *holds, const struct reply_line *row);

#endif
