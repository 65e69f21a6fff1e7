/* SPDX-License-Identifier: BSD-2-Clause */
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
#ifndef CORE_AUTH_H
#define CORE_AUTH_H

#include "daemon/core/session/request_context.h"

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

#endif
