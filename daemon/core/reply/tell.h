/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines that are sent to sessions, now or later; refusals, and the bounds of what a request asks for; the slow log. */
#ifndef CORE_TELL_H
#define CORE_TELL_H

#include "daemon/core/session/request_context.h"

/* The slow log: waits and holds of sessions that took longer than slow.wait and slow.hold say. round.c tells those calls to stores that did. */

/* The request of this trace has waited since then, and is answered with that outcome. */
void slow_wait(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome);
/* So many names were asked for at once, and are granted. Of these, this one was waited for last. */
void slow_wait_of_group(struct request_context *x, const struct session *s, struct span name, unsigned names, struct span trace, struct instant since);
/* A TAKE has got a job, for which it has waited since then while the job was due. */
void slow_wait_of_take(struct request_context *x, const struct session *s, struct span queue, struct instant since);
/* What was held since then is not any more. */
void slow_hold(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome);

/* The lines that sessions are told: errors, grants, losses. This file decides only that too many mistakes in a row end a session. */

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

/* What a request is told that was refused. */

/* The answer to a request that was refused, but by BUSY or TIMEOUT: see show.h. */
void deliver_refusal(struct request_context *x, struct session *s, struct span tag, enum refusal why);
enum result refusal_result(enum refusal why); /* for the figures */
/* Why a LOCKALL, LOCKANY or ACQUIRE was withdrawn. denied: by new rules. */
enum refusal withdrawn_why(const struct request_context *x, bool denied);

/* Requests that the stores are asked about, and that are answered later: `struct pending`. */

/* Whether the session may have one more request at the stores; false: the request was refused. */
#define PENDINGS_MOST 1024 /* of a session, however large limits.waiting is: each keeps what it asks for … */
#define PENDING_BYTES 8192 /* … and one that keeps more than this counts once more for each so many bytes */
#define LISTS_MOST    256  /* likewise */
/* So many of one kind may be under way. */
static inline uint64_t under_way_most(const struct core *core, uint64_t most)
{
	return core->conf.limits.waiting < most ? core->conf.limits.waiting : most;
}
/* Whether its peer, and all together, may have one more; false: likewise. */
bool peer_within_limit(struct request_context *x, struct session *s);
bool pendings_within_limit(struct request_context *x, struct session *s);
/* Notes that the request being served asks the stores about this lock, and is answered later. */
struct pending *pending_of_request(struct request_context *x, struct session *s, struct lock *l);
/* Likewise, of a request that does not ask them yet, and has another bound: it does not count among those of its peer. */
struct pending *pending_uncounted(struct request_context *x, struct session *s, struct lock *l);

/* What a request about a lock asks for, and the bounds that it must keep. A check that fails has answered the request. */

bool refuse_name(struct request_context *x, struct session *s);
bool refuse_shared_terms(struct request_context *x, struct session *s);
bool refuse_bound(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what);

static inline bool name_is_allowed(struct request_context *x, struct session *s)
{
	return x->request.word[0].n <= x->core->conf.limits.name || refuse_name(x, s);
}

/* Of LOCK, LOCKALL and LOCKANY. A shared lock has no end and no lock-delay of its own. */
static inline bool terms_suit_mode(struct request_context *x, struct session *s)
{
	return !request_is_shared(&x->request) || refuse_shared_terms(x, s);
}

static inline bool bound_is_kept(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what)
{
	return !request_has(&x->request, field) || x->request.field[field].number <= most || refuse_bound(x, s, field, most, what);
}

/*
 * How often a second the watchdog renews what sessions have on leases shorter than 10 s: limits.renewals bounds it for all sessions, for those of
 * one peer (half), and for one session (a twentieth). Longer leases are bounded by limits.locks. What a request that waits may come to hold counts already.
 *
 * A session's figure is counted anew at each of its requests for such a lease. That of its peer, and of all, is summed up every 100 ms, and grows by each
 * request in between. With each sum the figures of other sessions are counted anew as well: of all of them, unless they have thousands of leases.
 */

/* Whether the request that is being served may have a lease of the length that it asks for; false: it was refused. */
bool ttl_is_allowed(struct request_context *x, struct session *s);

#endif
