/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of administrators, who may end what others hold. */
#ifndef CORE_ADMIN_H
#define CORE_ADMIN_H

#include "daemon/core/session/commander.h"

/* The stores have answered a BREAK. */
void broken_answer(struct commander *x, struct session *s, const struct pending *p);

void serve_DRAIN(struct commander *x, struct session *s);
void serve_KILL(struct commander *x, struct session *s);
void serve_BREAK(struct commander *x, struct session *s);

#endif
