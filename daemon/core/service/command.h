/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes each line to its handler. HELLO, PING, QUIT and CANCEL, which concern the session itself, are served here. */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include "daemon/core/session/request_context.h"

/* Serves one line of a session. Notices may be waiting afterwards. */
void command_line(struct request_context *x, struct session *s, struct input line);

#endif
