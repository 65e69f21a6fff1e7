/* SPDX-License-Identifier: BSD-2-Clause */
/* run --or-defer: the third answer to a conflict, beside failing and waiting. */
#ifndef CLIENT_OR_DEFER_H
#define CLIENT_OR_DEFER_H

#include "client/cli/io/invocation.h"

/* Puts the command line into the queue, as text for a shell, with the lock NAME. False: after a complaint. */
bool or_defer(const struct invocation *in, struct redlock *c);

#endif
