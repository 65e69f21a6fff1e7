/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines that are sent to sessions, now or later; refusals, and the bounds of what a request asks for; the slow log. */
#ifndef CORE_SEND_H
#define CORE_SEND_H

#include "daemon/core/session/request_context.h"

/* The slow log: waits and holds of sessions that were longer than slow.wait and slow.hold. round.c logs slow calls to stores. */

/* The request with this trace has waited since then, and is answered with that outcome. */
void slow_wait(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome);
/* A request for so many names is granted. Of these, it waited for this one last. */
void slow_wait_of_group(struct request_context *x, const struct session *s, struct span name, unsigned names, struct span trace, struct instant since);
/* A TAKE has got a job. Since then it has waited although the job was due. */
void slow_wait_of_take(struct request_context *x, const struct session *s, struct span queue, struct instant since);
/* A hold that began then has ended. */
void slow_hold(struct request_context *x, const struct session *s, struct span name, struct span trace, struct instant since, const char *outcome);

/* The lines to sessions: errors, grants, losses. The only decision here is that too many mistakes in a row end a session. */

/* Ends the line and sends it, unless the session is over or has no connection. */
void send_line(struct request_context *x, struct session *s, struct reply *r);

/* Sends ERR to the request with this tag. */
void send_error(struct request_context *x, struct session *s, struct span tag, enum error code, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Sends ERR CANCELLED to the request with this tag, which waits: the same request has come again, and takes its place. */
void send_replaced(struct request_context *x, struct session *s, struct span tag);
/* ERR DRAINING, and its text. */
void send_draining(struct request_context *x, struct session *s, struct span tag);
/* ERR LIMIT: too many requests or claims of the peer, or of all. */
void send_crowded(struct request_context *x, struct session *s, struct span tag);
/* ERR QUORUM to the request that is being served: its lock is being adopted. */
void send_adopting(struct request_context *x, struct session *s);
void send_revoked(struct request_context *x, struct session *s, struct span tag); /* new rules deny what it waits for */
/* in_ms, how long the daemon will still wait for holders; -1: until there are none. */
void reply_drain_end(const struct request_context *x, struct reply *r);
const char *draining_text(const struct request_context *x);
/* Sends ERR to the request that is being served, because it is not valid. Counts it as a mistake. */
void send_invalid(struct request_context *x, struct session *s, enum error code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Sends ERR DEADLOCK to the LOCK with this tag. */
void send_deadlock(struct request_context *x, struct session *s, struct span tag, struct span cycle);

/* The fields of a hold: name fence valid_ms. Marks its client as told over this connection. */
void reply_grant(struct request_context *x, struct reply *r, struct claim *holder);
/* Sends OK to a LOCK of this session. */
void send_granted(struct request_context *x, struct claim *holder, struct span tag, unsigned count);
/* Call before the client is told that it holds this. The claim no longer lapses, and the journal notes that. An earlier loss is reported first. */
void claim_notified(struct request_context *x, struct claim *c);
/* The same for a row of RESUME, where an earlier loss is reported after the OK. */
void claim_row_notified(struct request_context *x, struct claim *c);
/* The client has heard of this hold. Reports an earlier loss if that was not done yet, and forgets it. In the journal the record of the hold ends the loss. */
void claim_forget_loss(struct request_context *x, const struct claim *c);
/* A session was resumed, and its client has not asked for this claim again. Its place or grant is kept until `until` at most. */
void claim_bound(struct request_context *x, struct claim *c, struct instant until);
/* Returns until when a resumed session may repeat a LOCK: for its grace from now on, or for the default lease if that is longer. */
struct instant resume_repeat_until(const struct request_context *x, const struct session *s);
/*
 * What is reported of a request, a hold or a loss, whether it is that of a claim or of a permit: to its client by a push, to sessions that watch, and to the
 * audit log.
 */
struct report {
	struct session *session;
	struct span name, owner;
	struct remark remark;
	int64_t fence;
	unsigned permit, limit;  /* the slot, and the limit of the semaphore; limit 0: it is a claim */
	unsigned waiters;
	bool shared;
	struct instant asked_at; /* a claim: only while it waits */
	struct instant granted_at;
	enum loss loss;
};

struct report report_of_claim(const struct claim *c);
void report_log_lost(struct request_context *x, struct report of);
/* Sends "! LOST" and the like to its client, with this field; NULL: the reason of the loss. */
void push(struct request_context *x, struct report of, const char *word, const char *field, int64_t value);
/* Sends LOST, and marks the claim as told. */
void send_lost(struct request_context *x, struct claim *c);

/* The answers to refused requests. */

/* Answers a request that was refused. For BUSY and TIMEOUT see show.h. */
void deliver_refusal(struct request_context *x, struct session *s, struct span tag, enum refusal why);
enum result refusal_result(enum refusal why); /* for the metrics */
static inline bool refusal_is_trouble(enum refusal why) /* of the stores */
{
	return why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED;
}
/* Returns why a LOCKALL, LOCKANY or ACQUIRE was withdrawn. denied: new rules deny it. */
enum refusal withdrawn_why(const struct request_context *x, bool denied);

/* Requests that ask the stores, and are answered later: `struct pending`. */

/* Whether the session may have one more request at the stores. False: the request was refused. */
#define PENDINGS_MOST 1024 /* for one session, however large limits.waiting is: each pending keeps a copy of its request … */
#define PENDING_BYTES 8192 /* … and counts once more for each so many bytes that it keeps */
#define LISTS_MOST    256  /* the same for LISTs */
/* Returns how many of one kind may be under way. */
static inline uint64_t under_way_most(const struct core *core, uint64_t most)
{
	return core->conf.limits.waiting < most ? core->conf.limits.waiting : most;
}
/* Whether its peer, and all together, may have one more. False: the request was refused. */
bool peer_within_limit(struct request_context *x, struct session *s);
bool pendings_within_limit(struct request_context *x, struct session *s);
/* The request that is being served asks the stores about this lock, and is answered later. */
struct pending *pending_of_request(struct request_context *x, struct session *s, struct lock *l);
/* The same for a request that does not ask them yet, and has another bound. It does not count for its peer. */
struct pending *pending_uncounted(struct request_context *x, struct session *s, struct lock *l);
/* It was answered, or its session is gone. Frees it. */
void pending_answered(struct request_context *x, struct pending *p);

/* The terms of a request about a lock, and the bounds on them. If a check fails, it has answered the request. */

bool refuse_name(struct request_context *x, struct session *s);
bool refuse_shared_terms(struct request_context *x, struct session *s);
bool refuse_bound(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what);

static inline bool name_is_allowed(struct request_context *x, struct session *s)
{
	return x->request.word[0].n <= x->core->conf.limits.name || refuse_name(x, s);
}

/* For LOCK, LOCKALL and LOCKANY. A shared lock can have neither a fixed end nor a lock-delay. */
static inline bool terms_suit_mode(struct request_context *x, struct session *s)
{
	return !request_is_shared(&x->request) || refuse_shared_terms(x, s);
}

static inline bool bound_is_kept(struct request_context *x, struct session *s, enum field field, int64_t most, const char *what)
{
	return !request_has(&x->request, field) || x->request.field[field].number <= most || refuse_bound(x, s, field, most, what);
}

/*
 * How often a second the watchdog renews what sessions hold on leases shorter than 10 s. limits.renewals bounds it for all sessions, for those of one peer
 * (half), and for one session (a twentieth). Longer leases are bounded by limits.locks. A request that waits counts as if it were granted.
 *
 * The figure of a session is counted anew at each of its requests for such a lease. The sums for its peer and for all are made every 100 ms, and grow with each
 * request in between. With each sum the figures of other sessions are counted anew as well, or some of them if they have thousands of leases.
 */

/* Whether the request that is being served may have a lease of its length. False: it was refused. */
bool ttl_is_allowed(struct request_context *x, struct session *s);

#endif
