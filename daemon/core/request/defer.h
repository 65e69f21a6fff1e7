/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests DEFER, TAKE, DONE and RETRY. */
#ifndef CORE_DEFER_H
#define CORE_DEFER_H

#include "daemon/core/session/jobs.h"

void serve_DEFER(struct commander *x, struct session *s);
void serve_TAKE(struct commander *x, struct session *s);
void serve_DONE(struct commander *x, struct session *s);
void serve_RETRY(struct commander *x, struct session *s);
void serve_DROP(struct commander *x, struct session *s);

#endif
