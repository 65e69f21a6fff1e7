/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a session with grace: QUIT, so that what it holds is free at once.
 */
#ifndef CLIENT_QUIT_H
#define CLIENT_QUIT_H

#include "client/lib/redlock.h"

/*
 * Sends QUIT, if this process owns the session, and waits at most a second for the end. The caller closes the connection after
 * it.
 */
void quit_session(struct redlock *c);

#endif
