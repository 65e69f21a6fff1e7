/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: collected, and written once per flush, or sooner if it is large. */
#ifndef NET_OUTPUT_H
#define NET_OUTPUT_H

#include "daemon/net/conn_parts.h"

void conn_send(struct conn *c, const void *bytes, size_t size);
void conn_flush(struct conn *c);      /* may free c if it is closing */
void conn_await_sent(struct conn *c); /* `sent` follows when there is room for more */

/* Bytes that a connection keeps. If all together have no room for more, connections end: the largest of the peer that has most. */
void conn_add_output(struct conn *c, const void *bytes, size_t n);
void conn_add_input(struct conn *c, const void *bytes, size_t n); /* may fail c */
#endif
