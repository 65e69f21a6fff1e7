/* SPDX-License-Identifier: BSD-2-Clause */
/* What the connections to servers have in common in the loop: timers, and bufferevents for those that carry no calls. Without memory the process ends. */
#ifndef REDIS_LOOP_H
#define REDIS_LOOP_H

#include "daemon/redis/resp.h"

#include <event2/event.h>

struct bufferevent;
struct ssl_ctx_st;

struct event *loop_timer(struct event_base *base, event_callback_fn on, void *context);
void loop_arm(struct event *timer, int64_t us);

/* A socket that is not connected yet; inside TLS if tls and *tls are not NULL: the certificate must have this name. NULL: errno of socket(2). */
struct bufferevent *loop_socket(struct event_base *base, int family, struct ssl_ctx_st *const *tls, const char *name);
void loop_send(struct bufferevent *bev, struct buf *out); /* frees what is in out */

/* on_reply: handles one reply. 0: the connection was given up, or the rest must wait; -1: that is no sound reply. Returns 0, or -1: what came is not sound. */
int loop_read(struct bufferevent *bev, struct resp *r, int (*on_reply)(void *context), void *context);
/* Why TLS has ended the connection; NULL: it has not. For the event callback. */
const char *loop_tls_reason(struct bufferevent *bev);

#endif
