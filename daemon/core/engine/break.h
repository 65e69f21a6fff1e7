/* SPDX-License-Identifier: BSD-2-Clause */
/* BREAK of a lock that no session of this daemon holds: a question to the stores what stands there, and then the same value is broken at each of them. */
#ifndef CORE_BREAK_H
#define CORE_BREAK_H

#include "daemon/core/round/engine_data.h"

/* Answers the pending, by NOTICE_SEEN: its `free` says that nobody has the lock, else elsewhere.pttl_ms tells in how long it is free. */
void break_begin(struct engine *e, struct pending *p);
void break_answered(struct engine *e, struct round *r, const struct answer *a);
void break_expired(struct engine *e, struct round *r);
/* EVENT_BROKEN: the stores are asked at once whether that is so, as the message may be old. */
void break_heard(struct engine *e, struct span name);

#endif
