/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines that sessions are told: errors, grants, losses. This file decides only that too many mistakes in a row end a session. */
#ifndef CORE_TELL_H
#define CORE_TELL_H

#include "daemon/core/session/request_context.h"

/* Ends the line and sends it, unless the session is over or has no connection. */
void tell_line(struct request_context *x, struct session *s, struct reply *r);

/* ERR, to the request with this tag. */
void tell_error(struct request_context *x, struct session *s, struct span tag, enum error code, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* ERR CANCELLED, to the request with this tag, which waits: the same request has come again, and takes its place. */
void tell_replaced(struct request_context *x, struct session *s, struct span tag);
/* ERR DRAINING, and what it says. */
void tell_draining(struct request_context *x, struct session *s, struct span tag);
/* ERR LIMIT: no room in the crowd of the peer, or of all. */
void tell_crowded(struct request_context *x, struct session *s, struct span tag);
/* ERR QUORUM, to the request that is being served: its lock is being adopted. */
void tell_adopting(struct request_context *x, struct session *s);
void tell_revoked(struct request_context *x, struct session *s, struct span tag); /* new rules do not allow what it waits for */
/* in_ms, how long the daemon still waits for holders; -1: as long as there are any. */
void reply_drain_end(const struct request_context *x, struct reply *r);
const char *draining_text(const struct request_context *x);
/* ERR, to the request that is being served, which is not valid. Counts it as a mistake. */
void tell_mistake(struct request_context *x, struct session *s, enum error code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* ERR DEADLOCK, to the LOCK with this tag. */
void tell_cycle(struct request_context *x, struct session *s, struct span tag, struct span cycle);
/* Counts one more mistake in a row. A session that makes too many is told so, and its connection is closed. */
void count_mistake(struct request_context *x, struct session *s);

/* The fields of a hold: name fence valid_ms. From here on its client counts as told over this connection. */
void reply_grant(struct request_context *x, struct reply *r, struct claim *holder);
/* OK, to a LOCK of this session. */
void tell_granted(struct request_context *x, struct claim *holder, struct span tag, unsigned count);
/* The client is about to be told that it holds this. So the claim does not lapse, and the journal notes it. An earlier loss is told first. */
void claim_hear(struct request_context *x, struct claim *c);
/* The same for a row of RESUME, where an earlier loss is told behind the OK. */
void claim_hear_row(struct request_context *x, struct claim *c);
/* The client has heard of this hold. Tells an earlier loss that was not told yet, and forgets it. In the journal the record of the hold ends the loss. */
void claim_forget_loss(struct request_context *x, const struct claim *c);
/* A session that is back has not asked for this claim again: its place or grant is kept until `until` at most. */
void claim_bound(struct request_context *x, struct claim *c, struct instant until);
/* Until when a session that is back may repeat a LOCK: for its grace from now on, or the default lease if that is longer. */
struct instant resume_repeat_until(const struct request_context *x, const struct session *s);
/* LOST. The claim counts as told. */
void tell_lost(struct request_context *x, struct claim *c);
/* RISK or SAFE, with how long the lease is still valid in that field. */
void tell_validity(struct request_context *x, const struct claim *c, const char *word, const char *field);

#endif
