/* SPDX-License-Identifier: BSD-2-Clause */
/* What a service consists of, and the parts of its step. */
#ifndef CORE_STEP_H
#define CORE_STEP_H

#include "daemon/core/engine/engine.h"
#include "daemon/core/service/service.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/session.h"

/* What a service consists of. Only for service.c. */

struct service {
	struct core core;
	struct engine engine;
	struct session_table sessions;
	struct request_context context;
	bool stepping;
	enum { RUN_NEW, RUN_RESTORING, RUN_BEGUN } run; /* the records of the previous run come first */
};

/* Notices are sent: as replies to the requests that waited, and as pushes. */

/* Sends all notices, in order, to the sessions that they concern. This creates no notices. */
void deliver_notices(struct request_context *x);

/* Passes each line to its handler. HELLO, PING, QUIT and CANCEL, which concern the session itself, are served here. */

/* Serves one line of a session. Deliver notices afterwards. */
void command_line(struct request_context *x, struct session *s, struct input line);

/* When a session is hung up: it has sent its last line and has all answers, was cut off, has fallen silent, or the daemon stops. */

/*
 * Call this after anything was done for a session. If the session is over, or has all its answers after its last line, ends it or its connection. Then its
 * pointer is invalid.
 */
void hangup_if_due(struct request_context *x, struct session *s);
/* TIMER_SESSION: its heartbeat is missing, or the time is over for rounds that may answer its last requests. */
void hangup_fired(struct request_context *x, struct session *s);
/* While all sessions together have read too much ahead, cuts off those with the most. */
void hangup_too_far_ahead(struct request_context *x);
/* The daemon stops: refuses the RESUME and the pendings of this session. True: there were some. */
bool hangup_refuse(struct request_context *x, struct session *s);
/* EVENT_GONE: the connection is gone. Ends the session, unless it has grace. Then its pointer is invalid. */
void hangup_gone(struct request_context *x, struct session *s, enum gone how);

/* After each timer and each event: delivers notices and outcomes of homes, continues groups and permits, and serves sessions that are ready. */

/* Continues one group or permit that is due. */
void after_step_due(struct request_context *x);

/* Sends notices. These may let groups and permits continue, which may create further notices. */
static inline void after_step_notices(struct request_context *x)
{
	if (x->engine->notices.count > 0)
		deliver_notices(x);
	while (x->due > 0)
		after_step_due(x);
}

/* Serves one line. False: the session is gone. */
bool after_step_line(struct request_context *x, struct session *session, struct input line);
/* Serves lines of this session that were read ahead, until it has to wait. Its pointer may be invalid then. False: the step has no time for more lines. */
bool after_step_session(struct request_context *x, struct session *session);
/* TIMER_HANDED: serves some of what waited before the restart, if the stores have answered. */
void after_step_handed(struct request_context *x);
/* Serves all of it without waiting for the stores: the daemon stops, and each request is answered. */
void after_step_handed_all(struct request_context *x);
/* Votes fell: a job that has ended so is lost before another line is served. */
void after_step_fallen(struct request_context *x);
/* Does all of this until nothing more follows. */
void after_step_all(struct request_context *x);

#endif
