/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a request may be served: what the peer must have shown, and which right each request needs for which names. Asked before a request is served, so
 * that no answer tells whether something is there.
 */
#ifndef CORE_ACCESS_H
#define CORE_ACCESS_H

#include "daemon/core/session/request_context.h"

/* The request being served. False: it is denied, and answered. Only for a daemon with users or rules. */
bool access_is_granted(struct request_context *x, struct session *s);
/* Whether somebody has decided what the request needs: for a test. One that nobody has thought of is denied. */
bool access_is_decided(enum verb verb);

#endif
