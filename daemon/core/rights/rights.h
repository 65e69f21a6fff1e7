/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may do what: suspects, AUTH, and the right that each request needs. */
#ifndef CORE_RIGHTS_H
#define CORE_RIGHTS_H

#include "daemon/base/instant.h"
#include "daemon/base/map.h"
#include "daemon/core/session/request_context.h"
#include "proto/span.h"

#include <sys/queue.h>

/*
 * Who has shown wrong secrets: an origin (peer.h) together with the user that it has named, so that nobody is delayed by what others on his address fail
 * with. A suspect is forgiven when it has not failed for SUSPECT_FORGIVEN. SUSPECTS_MOST are remembered, those that failed last; of one origin SUSPECTS_OF_ONE,
 * so that it does not make the daemon forget those of all others. An origin that names more users escapes the delay, and not its turn: each costs a
 * verification. To delay all of its users would let anybody on an address (of a NAT, of this host) keep all others there out.
 */

#define SUSPECTS_MOST     1000
#define SUSPECTS_OF_ONE   250
#define SUSPECT_FORGIVEN  (10 * 60 * SEC)
#define SUSPECT_USER_MOST 128 /* bytes of a user's name by which suspects are told apart */

struct suspects {
	struct map by_name, origins;
	TAILQ_HEAD(, suspect) all; /* the one whose last failure is the oldest, first */
};

void suspects_init(struct suspects *a, const uint64_t key[2]);
void suspects_release(struct suspects *a);
void suspect_failed(struct suspects *a, struct span origin, struct span user, struct instant now);
/* How often it has failed in a row; 0: it has not, or is forgiven. */
unsigned suspect_failures(struct suspects *a, struct span origin, struct span user, struct instant now);

/*
 * The request AUTH. The outer layer verifies secrets, one at a time, because that takes long on purpose (EFFECT_VERIFY, EVENT_VERIFIED). Those that wait are
 * taken from one origin after the other: the uid of a Unix peer, the address of another, of IPv6 its /64. So a flood of one origin delays no other by more
 * than one verification each. In an origin the users that AUTHs name take turns, and each verification answers the one whose turn it is.
 *
 * Invented users are many, so they must not delay one who exists: while AUTHs wait of users who do not exist, or whose secret was found wrong, a verification
 * that answers one of these is of the next secret of a user who exists. If it is right, that AUTH is answered as well, at once. If it is wrong, that AUTH is
 * answered in its turn, as if it had not been verified: so without a right secret nobody learns from the time which users exist.
 *
 * An answer comes 100 ms after its request at the soonest if the connection has failed once, or its origin has with the same user, and twice as late for each
 * further failure, AUTH_DELAY_MOST at most. So wrong secrets for one user delay nobody else on the same address. The third failure ends the connection; an
 * origin is forgiven when it has not failed with that user for SUSPECT_FORGIVEN. What costs no verification (a name that no user can have, or who hangs up
 * before his turn) is not remembered.
 *
 * Of one user and origin at most AUTHS_OF_USER_MOST wait: when one more comes the oldest is refused, else the right secret would wait for as many as others
 * send.
 */

#define AUTH_FAILURES_MOST 3
#define AUTH_DELAY_FIRST   (100 * MSEC)
#define AUTH_DELAY_MOST    (5 * SEC)
#define AUTHS_OF_USER_MOST 64

void serve_AUTH(struct request_context *x, struct session *s);
/* The answer to the EFFECT_VERIFY of that number. */
void auth_verified(struct request_context *x, uint64_t number, bool ok);
void auth_fired(struct request_context *x, struct timer *t);
/* Its session has gone, or is answered otherwise: pending.session is NULL. */
void auth_drop(struct request_context *x, struct auth *auth);
/* What it was asked with, and when. */
struct instant auth_asks(const struct auth *auth, struct span *ret_user, struct span *ret_secret);
void auths_free(struct request_context *x);

/*
 * Whether a request may be served: what the peer must have shown, and which right each request needs for which names. Asked before a request is served, so
 * that no answer tells whether something is there.
 */

/* The request being served. False: it is denied, and answered. Only for a daemon with users or rules. */
bool access_is_granted(struct request_context *x, struct session *s);
/* Whether somebody has decided what the request needs: for a test. One that nobody has thought of is denied. */
bool access_is_decided(enum verb verb);

#endif
