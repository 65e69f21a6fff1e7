/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to HTTP requests. Each ends its connection. */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include "daemon/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct evhttp_request;

#define TYPE_TEXT    "text/plain; charset=utf-8"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_JSON    "application/json"
#define TYPE_HTML    "text/html; charset=utf-8"

#define UNASKED_MOST ((size_t)4 * 1024) /* what a client sends behind its request: evhttp keeps it, and nobody reads it */

const char *reason_of(int status);
bool request_is_head(struct evhttp_request *req);
/* The headers that all answers have. csp NULL: nothing may be loaded. */
void answer_headers(struct evhttp_request *req, const char *type, const char *csp);
void answer(struct evhttp_request *req, int status, const char *type, const void *body, size_t n, const char *csp);

/* The text of several answers, which is freed when the last of them was read. */
struct shared {
	unsigned owners;
	struct buf text;
};

struct shared *shared_new(struct buf *text); /* takes the text, which is not empty, and leaves an empty one; its caller is an owner */
void shared_free(struct shared *s);          /* for one owner */
void answer_shared(struct evhttp_request *req, const char *type, struct shared *s); /* 200 */

/*
 * For the close callback of a connection whose request is not answered yet. evhttp has parted the two if the client is the cause, and leaves the request
 * to us; else it frees the request itself.
 */
void request_abandoned(struct evhttp_request *req);
void answer_error(struct evhttp_request *req, int status, const char *text); /* one line of text */

#endif
