/* SPDX-License-Identifier: BSD-2-Clause */
/* Server-sent events to one client, which is never waited for: one that reads nothing for STALLED_US is cut off. Embedded. */
#ifndef WEB_SSE_H
#define WEB_SSE_H

#include "daemon/base/instant.h"

#include <stdbool.h>
#include <stddef.h>

struct evhttp_connection;
struct evhttp_request;
struct visit;

struct sse {
	struct evhttp_request *req;
	struct visit *visit;
	size_t unsent;        /* at the last beat */
	struct instant moved; /* when less was unsent than at the beat before */
	struct instant said;  /* when something was sent last */
};

/* The head of the answer. on_close: see visit_hold(). */
void sse_begin(struct sse *s, struct evhttp_request *req, struct visit *v, void (*on_close)(struct evhttp_connection *c, void *context), void *context);
void sse_greet(struct sse *s); /* what a client hears first */
void sse_say(struct sse *s, const void *bytes, size_t n);
size_t sse_unsent(const struct sse *s);
/* Once a second. False: it was cut off. */
bool sse_beat(struct sse *s, struct instant now);
void sse_end(struct evhttp_request *req, struct visit *v); /* as the protocol has it; on_close does not follow */

#endif
