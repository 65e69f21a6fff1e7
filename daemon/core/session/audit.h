/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The audit log: who was granted what, gave it back or lost it, and who took it from others by force. A line is one JSON object, which the outer layer
 * completes with the time. A byte that is not part of well-formed UTF-8 becomes a lone low surrogate, as in redlock --json.
 */
#ifndef CORE_AUDIT_H
#define CORE_AUDIT_H

#include "daemon/core/session/session.h"

struct audit {
	const char *event;  /* "granted", "released", "lost", "break", "kill" */
	const struct session *session;
	struct span name;   /* n 0: none */
	struct span permit; /* n 0: it is no permit */
	struct span trace;  /* of the request; n 0: none */
	int64_t fence;      /* 0: none */
	int64_t held_us;    /* less than 0: none */
	const char *reason; /* NULL: none */
	uint64_t victim;    /* 0: none; the session that is ended */
};

/* Effect: one line. Only if core_conf.audit. */
void audit_write(struct core *core, const struct audit *a);

#endif
