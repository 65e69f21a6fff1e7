/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a session with grace: QUIT, so that what it holds is free at once.
 */
#ifndef CLIENT_FAREWELL_H
#define CLIENT_FAREWELL_H

#include "client/redlock.h"

/* Says QUIT, where this process may, and waits for the end at most a second. The connection is closed afterwards, whatever came of it. */
void farewell(struct redlock *c);

#endif
