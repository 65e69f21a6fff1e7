/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a connection, what its socket is watched for, and the lists in which it waits for the loop. Nothing here calls the sink. */
#ifndef NET_CONN_STATE_H
#define NET_CONN_STATE_H

#include "daemon/net/conn_parts.h"

void conn_set_state(struct conn *c, enum conn_state state, const char *why);
void conn_arm(struct conn *c);
void conn_watch(struct conn *c);               /* makes the kernel report the present state of the socket again */
void conn_want_turn(struct conn *c);           /* the loop comes back to it: at the turn of its peer, or at once if it has ended */
void conn_leave_turns(struct conn *c);         /* takes it off the lists in which it waits for the loop */
void conn_wait_to_be_read(struct conn *c, bool parted); /* likewise, and then reads it */
void conn_mark_dirty(struct conn *c);          /* puts c on hub.dirty */
void conn_fail(struct conn *c, enum gone how); /* for a session: the loop calls sink.gone later. Idempotent. */
void conn_dismiss(struct conn *c);             /* for a session: the loop calls sink.gone(GONE_RESTART) later, then closes it as in closing.h */

#endif
