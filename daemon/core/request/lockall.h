/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests LOCKALL and LOCKANY: what they must keep, and the group that they make. */
#ifndef CORE_LOCKALL_H
#define CORE_LOCKALL_H

#include "daemon/core/session/group.h"

void serve_LOCKALL(struct request_context *x, struct session *s);
void serve_LOCKANY(struct request_context *x, struct session *s);

#endif
