/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the buffers of connections, and its bound for all together: clients that do not read, or do not end their lines, must not take all memory. A
 * client that reads has little unsent, and stays, however much others have. See output.h.
 */
#ifndef NET_HELD_H
#define NET_HELD_H

#include "daemon/net/conn_parts.h"

void conn_count_held(struct conn *c); /* after its buffers have changed */
void conn_leave_share(struct conn *c);
void conn_drop_output(struct conn *c);
void conn_drop_input(struct conn *c);
struct conn *held_most(const struct hub *h); /* the session that has most, of the peer that has most; NULL: no session has a buffer */

#endif
