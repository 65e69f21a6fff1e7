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
 * Who has sent wrong secrets. A suspect is an origin (peer.h) together with the user that it named, so nobody is delayed by the failures of others on his
 * address. A suspect is forgiven if it has not failed for SUSPECT_FORGIVEN.
 *
 * The daemon remembers the SUSPECTS_MOST that failed last. Of one origin it remembers SUSPECTS_OF_ONE, so that this origin cannot push out those of all others.
 * An origin that names more users escapes the delay, but not its turn: each AUTH costs a verification. If all users of an origin were delayed, anybody on an
 * address (of a NAT, of this host) could keep all others there out.
 */

#define SUSPECTS_MOST     1000
#define SUSPECTS_OF_ONE   250
#define SUSPECT_FORGIVEN  (10 * 60 * SEC)
#define SUSPECT_USER_MOST 128 /* bytes of a user's name that distinguish suspects */

struct suspects {
	struct map by_name, origins;
	TAILQ_HEAD(, suspect) all; /* the one whose last failure is oldest comes first */
};

void suspects_init(struct suspects *a, const uint64_t key[2]);
void suspects_release(struct suspects *a);
void suspect_failed(struct suspects *a, struct span origin, struct span user, struct instant now);
/* Returns how many times it has failed in a row; 0: it has not, or is forgiven. */
unsigned suspect_failures(struct suspects *a, struct span origin, struct span user, struct instant now);

/*
 * The request AUTH. Verification takes long on purpose, so the outer layer verifies one secret at a time (EFFECT_VERIFY, EVENT_VERIFIED). Origins take turns.
 * An origin is the uid of a Unix peer, or the address of another (of IPv6 its /64). So a flood from one origin delays each other origin by one verification at
 * most. Within an origin the users that AUTHs name take turns, too. Each verification answers the AUTH whose turn it is.
 *
 * Invented users may be many, and must not delay a user who exists. Suppose that the AUTH whose turn it is names no existing user, or its secret was found
 * wrong already. Then the verification checks the next secret of an existing user instead. If that is right, its AUTH is answered at once as well. If it is
 * wrong, its AUTH is answered in its turn, as if it had not been verified. So without a right secret nobody learns from the time which users exist.
 *
 * After a failure of the connection, or of its origin with the same user, an answer comes 100 ms after its request at the soonest. Each further failure doubles
 * that, up to AUTH_DELAY_MOST. So wrong secrets for one user delay nobody else on the same address. The third failure ends the connection. An origin is
 * forgiven if it has not failed with that user for SUSPECT_FORGIVEN. An AUTH without a verification is not remembered: its name is no possible name of a user,
 * or its client hung up before its turn.
 *
 * Of one user and origin at most AUTHS_OF_USER_MOST wait. When one more comes, the oldest is refused. Otherwise the right secret would wait for all that others
 * send.
 */

#define AUTH_FAILURES_MOST 3
#define AUTH_DELAY_FIRST   (100 * MSEC)
#define AUTH_DELAY_MOST    (5 * SEC)
#define AUTHS_OF_USER_MOST 64

void serve_AUTH(struct request_context *x, struct session *s);
/* The outer layer has answered the EFFECT_VERIFY with that number. */
void auth_verified(struct request_context *x, uint64_t number, bool ok);
void auth_fired(struct request_context *x, struct timer *t);
/* Its session is gone, or was answered otherwise: pending.session is NULL. */
void auth_drop(struct request_context *x, struct auth *auth);
/* Returns its user and secret, and when it came. */
struct instant auth_asks(const struct auth *auth, struct span *ret_user, struct span *ret_secret);
void auths_free(struct request_context *x);

/*
 * Whether a request may be served: what the peer must have shown, and which right each request needs for which names. This is checked before a request is
 * served, so that no answer reveals whether something exists.
 */

/* Checks the request that is being served. False: it was denied and answered. Only for a daemon with users or rules. */
bool access_is_granted(struct request_context *x, struct session *s);
/* Whether the table says what the request needs: for a test. If it does not, the request is denied. */
bool access_is_decided(enum verb verb);

#endif
