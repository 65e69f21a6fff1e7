/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that a connection keeps. If all together have no room for more, connections end: the largest of the peer that has most. */
#ifndef NET_ROOM_H
#define NET_ROOM_H

#include "daemon/net/conn_parts.h"

void conn_add_output(struct conn *c, const void *bytes, size_t n);
void conn_add_input(struct conn *c, const void *bytes, size_t n); /* may fail c */

#endif
