/* SPDX-License-Identifier: BSD-2-Clause */
/* When a session is hung up: it has said its last word, was cut off, has fallen silent, or the daemon stops. */
#ifndef CORE_HANGUP_H
#define CORE_HANGUP_H

#include "daemon/core/session/request_context.h"

/* Call when anything was done for a session. Ends it, or its connection, if it is over or has said and heard all; its pointer is dead then. */
void hangup_settle(struct request_context *x, struct session *s);
/* TIMER_SESSION: its heartbeat is missing, or the rounds that may answer its last requests have had their time. */
void hangup_fired(struct request_context *x, struct session *s);
/* Cuts off those that have most read ahead, as long as all together have too much. */
void hangup_too_far_ahead(struct request_context *x);
/* The daemon stops: refuses the RESUME and the pendings of this session. True: there were some. */
bool hangup_refuse(struct request_context *x, struct session *s);
/* EVENT_GONE: the connection is gone. Ends the session, unless its grace keeps it; its pointer is dead then. */
void hangup_gone(struct request_context *x, struct session *s, enum gone how);

#endif
