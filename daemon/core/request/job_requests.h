/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests DEFER, TAKE, DONE and RETRY. */
#ifndef CORE_JOB_REQUESTS_H
#define CORE_JOB_REQUESTS_H

#include "daemon/core/session/jobs.h"

void serve_DEFER(struct request_context *x, struct session *s);
void serve_TAKE(struct request_context *x, struct session *s);
void serve_DONE(struct request_context *x, struct session *s);
void serve_RETRY(struct request_context *x, struct session *s);
void serve_DROP(struct request_context *x, struct session *s);

#endif
