/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices become lines: replies to the requests that waited, and pushes. */
#ifndef CORE_DELIVER_H
#define CORE_DELIVER_H

#include "daemon/core/session/request_context.h"

/* Tells all notices, in order, to the sessions that they concern. Delivering makes no notices. */
void deliver_notices(struct request_context *x);

#endif
