/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients may have stored. Jobs and rate limits, at the store that is their home: limits.stored for all clients, and half of it for those of one peer. The
 * store counts. Names that clients hold or wait for, and besides names that they have left taken, at each store: as much for all, and a quarter of it for those
 * of one peer. The daemon counts.
 */
#ifndef CORE_STORED_LIMITS_H
#define CORE_STORED_LIMITS_H

#include "daemon/core/session/request_context.h"

#define NAMES_SHARE 4 /* one peer has this part of what names may take */

/* The words that end each question that may store something: the peer of the session, and how many bytes all, and this peer, may have. */
void stored_put_terms(const struct request_context *x, const struct session *s, struct buf *words);
/* ERR LIMIT: the store has said by this word which of the two is too small. */
void tell_stored_full(struct request_context *x, struct session *s, struct span tag, struct span word);


/* Whether names may take so many bytes more. leaves: they may be left taken when their hold ends. False: the request was refused. */
bool names_have_room(struct request_context *x, struct session *s, uint64_t bytes, bool leaves);

/* All together take so little that nobody has to be asked. */
static inline bool names_are_few(const struct request_context *x, uint64_t bytes, bool leaves)
{
	return !leaves && x->sessions->origins.names + bytes <= x->core->conf.limits.stored / NAMES_SHARE;
}

/* Whether one more request may wait. False: it was refused. */
bool crowd_has_room(struct request_context *x, struct session *s);

/* The same of a name that is left taken now. */
bool kept_has_room(struct request_context *x, struct session *s, uint64_t bytes);

#endif
