/* SPDX-License-Identifier: BSD-2-Clause */
/* What all answers with rows share. A row is begun, filled and ended before anything else is sent. */
#ifndef CORE_ROWS_H
#define CORE_ROWS_H

#include "daemon/core/event/alarms.h"
#include "daemon/core/session/request_context.h"

void row_begin(struct request_context *x, struct span tag, struct reply *r);
void row_end(struct request_context *x, struct session *s, struct reply *r);
/* OK n= more=; more < 0: left out. The first begins that line, the second sends it. */
void rows_ended(struct request_context *x, struct reply *r, struct span tag, uint64_t n, int64_t more);
void rows_done(struct request_context *x, struct session *s, struct span tag, uint64_t n, int64_t more);
/* Whether so many bytes of rows fill a quarter of what a session may have unsent: one answer must not overflow that. */
bool rows_are_long(const struct request_context *x, size_t bytes);
/* Whether they fill a sixteenth, or 256 KiB: where all rows are sent in one step, they must not take long, either. */
bool rows_take_long(const struct request_context *x, size_t bytes);

/* Fields for SHOW and LIST: of a session; without a connection also since when, and for how much longer; of a holder elsewhere, as the stores said last. */
void reply_session(const struct request_context *x, struct reply *r, const struct session *s);
/* alarm=, if one was told of this claim or permit. */
void reply_alarm(const struct request_context *x, struct reply *r, const void *about, enum alarm_kind kind);
void reply_elsewhere(struct reply *r, const struct elsewhere *elsewhere);
/* For how long the daemon there holds it, if that is known: also for BUSY. */
void reply_elsewhere_held(const struct request_context *x, struct reply *r, const struct elsewhere *elsewhere);
/* mode=shared, of a hold or a wait; nothing for an exclusive one. */
static inline void reply_mode(struct reply *r, const struct claim *c)
{
	if (c->shared)
		reply_text(r, "mode", SPAN("shared"));
}

#endif
