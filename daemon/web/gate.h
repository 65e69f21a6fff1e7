/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is let in: the Host that a request names, its token, its peer. */
#ifndef WEB_GATE_H
#define WEB_GATE_H

#include "daemon/base/peer.h"

#include <stdbool.h>

struct web;
struct evhttp_request;

/* The status to refuse it with: 400, 401 or 421; 0: it may pass. open: the path needs no token. */
int gate_refuses(struct web *w, struct evhttp_request *req, bool open);
const char *gate_text(const struct web *w, int status); /* what that status tells its client */
/* Takes the same time wherever the two differ. */
bool secret_is(const char *secret, const char *text);
/* Whether it carries the token that opens /metrics alone. */
bool gate_has_metrics_token(const struct web *w, struct evhttp_request *req);
/* Returns the groups of the peer, which it refers to, for the caller to free; NULL: none. Its address is "" if the client has reset the connection. */
uint32_t *gate_peer(struct evhttp_request *req, struct peer *ret_peer);

#endif
