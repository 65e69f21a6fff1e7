/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request RATE: at most so many uses of a name in any window of a length. The home of the name counts, by its own clock and in one call; nothing of it is
 * kept here. What the limit promises ends when the home loses its memory, or its clock is set forward.
 */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "daemon/core/commander.h"
#include "daemon/core/home.h"

void serve_RATE(struct commander *x, struct session *s);
/* The outcome of its question is known. */
void rate_told(struct commander *x, struct home_question *q);

#endif
