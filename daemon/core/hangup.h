/* SPDX-License-Identifier: BSD-2-Clause */
/* When a session is hung up: it has said its last word, was cut off, has fallen silent, or the daemon stops. */
#ifndef CORE_HANGUP_H
#define CORE_HANGUP_H

#include "daemon/core/commander.h"

/* After anything was done for a session: is it over, has it said and heard all? Its pointer may be dead afterwards. */
void hangup_settle(struct commander *x, struct session *s);
/* TIMER_SESSION: its heartbeat is missing, or what may still answer its last requests has had its time. */
void hangup_fired(struct commander *x, struct session *s);
/* The daemon stops: what this session has in flight is refused. True: there was some. */
bool hangup_refuse(struct commander *x, struct session *s);

#endif
