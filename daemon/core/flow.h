/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many calls one store may be owing answers to. A store works off what it is sent one call after the other: what is sent faster only waits there,
 * and once it waits longer than a command may take, rounds fail, are undone and asked for anew, and the load that fails is larger than the one that
 * caused it. So the window is halved when calls begin to wait (below a few calls: when one takes longer than it may), and grows by and by while they do not and
 * it is used. A value machine.
 * Source: additive increase, multiplicative decrease (Chiu, Jain 1989), on delay rather than loss (Brakmo, Peterson 1995); RFC 7661.
 * See ALGORITHMS.md, Admission.
 */
#ifndef CORE_FLOW_H
#define CORE_FLOW_H

#include "daemon/base/instant.h"

#include <stdbool.h>

struct flow {
	unsigned open;         /* calls without an answer */
	unsigned window, most; /* how many there should be; never more than that */
	unsigned credit;       /* answers towards the next growth */
	int64_t least_us;      /* the shortest time that an answer took; INT64_MAX: not known */
	struct instant heard;  /* the last answer; or when a call was sent to a store that owed none */
	struct instant halved;
};

/* A new connection. most 0: the usual. */
void flow_begin(struct flow *f, unsigned most);
void flow_sent(struct flow *f, struct instant now);
/* executed: it was carried out, so the time since it was sent says how busy the store is. */
void flow_answered(struct flow *f, struct instant sent, struct instant now, bool executed, int64_t timeout_us);

/* A round may begin. */
static inline bool flow_has_room(const struct flow *f)
{
	return f->open < f->window;
}

/* A round that begins leaves this store out: the others can decide without it. */
static inline bool flow_is_full(const struct flow *f)
{
	return f->open >= 2 * f->window;
}

/* It owes answers, and has given none for as long as a command may take. */
static inline bool flow_is_stuck(const struct flow *f, struct instant now, int64_t timeout_us)
{
	return f->open > 0 && instant_diff(now, f->heard) >= timeout_us;
}

#endif
