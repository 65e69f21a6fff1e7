/* SPDX-License-Identifier: BSD-2-Clause */
/* What a request is told that was refused. */
#ifndef CORE_REFUSAL_H
#define CORE_REFUSAL_H

#include "daemon/core/session/request_context.h"

/* The answer to a request that was refused, but by BUSY or TIMEOUT: see busy.h. */
void deliver_refusal(struct request_context *x, struct session *s, struct span tag, enum refusal why);
enum result refusal_result(enum refusal why); /* for the figures */
/* Why a LOCKALL, LOCKANY or ACQUIRE was withdrawn. denied: by new rules. */
enum refusal withdrawn_why(const struct request_context *x, bool denied);

#endif
