/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of a store: how many calls may be without an answer there. A store serves one call after the other, so calls that are sent faster only wait.
 * If calls wait longer than the timeout, rounds fail, are released and begin again, and this adds more load than there was before. So the window is halved
 * when calls begin to wait; a small window only when a call takes as long as the timeout. It grows slowly while calls do not wait and the window is used. A
 * value machine.
 * Source: additive increase, multiplicative decrease (Chiu, Jain 1989), on delay rather than loss (Brakmo, Peterson 1995); RFC 7661.
 * See ALGORITHMS.md, Admission.
 */
#ifndef CORE_FLOW_H
#define CORE_FLOW_H

#include "daemon/base/instant.h"

#include <stdbool.h>

struct flow {
	unsigned open;         /* calls without an answer */
	unsigned window, most; /* the window; its upper bound */
	unsigned credit;       /* answers towards the next growth */
	int64_t least_us;      /* shortest time of an answer; INT64_MAX: unknown */
	struct instant heard;  /* time of the last answer, or of a call that was sent when none was open */
	struct instant halved;
};

/* A new connection. most 0: the default. */
void flow_begin(struct flow *f, unsigned most);
void flow_sent(struct flow *f, struct instant now);
/* executed: the call was carried out, so the time since it was sent shows how busy the store is. */
void flow_answered(struct flow *f, struct instant sent, struct instant now, bool executed, int64_t timeout_us);

/* Whether a round may begin. */
static inline bool flow_has_room(const struct flow *f)
{
	return f->open < f->window;
}

/* Whether a round that begins must leave this store out; the others can decide without it. */
static inline bool flow_is_overdrawn(const struct flow *f)
{
	return f->open >= 2 * f->window;
}

/* Calls are open, and no answer has come for the timeout of a command. */
static inline bool flow_is_stuck(const struct flow *f, struct instant now, int64_t timeout_us)
{
	return f->open > 0 && instant_diff(now, f->heard) >= timeout_us;
}

#endif
