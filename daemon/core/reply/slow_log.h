/* SPDX-License-Identifier: BSD-2-Clause */
/* The slow log: waits and holds of sessions that took longer than slow.wait and slow.hold say. calls.c tells those calls to stores that did. */
#ifndef CORE_SLOW_LOG_H
#define CORE_SLOW_LOG_H

#include "daemon/core/session/request_context.h"

/* The request of this trace has waited since then, and is answered with that outcome. */
void slow_wait(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome);
/* So many names were asked for at once, and are granted. Of these, this one was waited for last. */
void slow_wait_of_group(struct request_context *x, const struct session *s, struct span name, unsigned names, struct span trace, struct instant since);
/* A TAKE has got a job, for which it has waited since then while the job was due. */
void slow_wait_of_take(struct request_context *x, const struct session *s, struct span queue, struct instant since);
/* What was held since then is not any more. */
void slow_hold(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome);

#endif
