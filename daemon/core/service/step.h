/* SPDX-License-Identifier: BSD-2-Clause */
/* What a service consists of, and the parts of its step. */
#ifndef CORE_STEP_H
#define CORE_STEP_H

#include "daemon/core/engine/engine.h"
#include "daemon/core/service/service.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/session.h"

/* What a service consists of: for service.c and service.c alone. */

struct service {
	struct core core;
	struct engine engine;
	struct session_table sessions;
	struct request_context context;
	bool stepping;
	enum { RUN_NEW, RUN_RESTORING, RUN_BEGUN } run; /* the records of the previous run come first */
};

/* Notices become lines: replies to the requests that waited, and pushes. */

/* Tells all notices, in order, to the sessions that they concern. Delivering makes no notices. */
void deliver_notices(struct request_context *x);

/* Takes each line to its handler. HELLO, PING, QUIT and CANCEL, which concern the session itself, are served here. */

/* Serves one line of a session. Notices may be waiting afterwards. */
void command_line(struct request_context *x, struct session *s, struct input line);

/* When a session is hung up: it has said its last word, was cut off, has fallen silent, or the daemon stops. */

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

/*
 * What became possible: notices and outcomes of homes are delivered, groups and permits go on, and sessions that are ready are served. It follows each timer
 * and each event.
 */

/* Lets one group or permit go on that is due. */
void after_step_due(struct request_context *x);

/* Notices become lines. What they say of groups and permits makes these go on, which may make further notices. */
static inline void after_step_notices(struct request_context *x)
{
	if (x->engine->notices.count > 0)
		deliver_notices(x);
	while (x->due > 0)
		after_step_due(x);
}

/* Serves one line. False: the session is gone. */
bool after_step_line(struct request_context *x, struct session *session, struct input line);
/* Serves the lines of this session that were read ahead, until it has to wait; its pointer may be dead then. False: the step has no time for more lines. */
bool after_step_session(struct request_context *x, struct session *session);
/* TIMER_HANDED: serves some of what waited before the restart, if the stores have spoken. */
void after_step_handed(struct request_context *x);
/* All of it, whatever the stores say: the daemon stops, and each request is answered. */
void after_step_handed_all(struct request_context *x);
/* Votes fell: a job that this has ended is lost before another line is served. */
void after_step_fallen(struct request_context *x);
/* All of it, until nothing more follows. */
void settle(struct request_context *x);

#endif
