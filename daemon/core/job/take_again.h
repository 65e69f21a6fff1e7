/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TAKE after RESUME: the answer to an earlier TAKE may have been lost with the connection, and its job would be kept for a client that does not know of it. So
 * TAKE answers first with such a job: one that was given over an earlier connection, and about which the client has said nothing since.
 */
#ifndef CORE_TAKE_AGAIN_H
#define CORE_TAKE_AGAIN_H

#include "daemon/core/session/jobs.h"

/* The TAKE that is being served, of this session: answers it with such a job, now or later. False: the session has none of that queue. */
bool take_again(struct request_context *x, struct session *s);
/* The home has said what the payload is. */
void take_again_told(struct request_context *x, struct home_question *q);

#endif
