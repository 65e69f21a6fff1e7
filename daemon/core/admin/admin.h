/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of administrators, who may end what others hold. */
#ifndef CORE_ADMIN_H
#define CORE_ADMIN_H

#include "daemon/core/session/request_context.h"

/* The stores have answered a BREAK. */
void broken_answer(struct request_context *x, struct session *s, const struct pending *p);

void serve_DRAIN(struct request_context *x, struct session *s);
void serve_KILL(struct request_context *x, struct session *s);
void serve_BREAK(struct request_context *x, struct session *s);

#endif
