/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS of a web listener. The answer to a client's first bytes needs the private key, which takes longer than all else here, and strangers may ask for it. So
 * each pass of the loop answers one of them, in the order in which they have come.
 */
#ifndef WEB_GREETING_H
#define WEB_GREETING_H

#include <stdbool.h>
#include <stddef.h>

struct bufferevent;
struct evhttp_request;
struct visit;
struct web;

int greetings_init(struct web *w);
void greetings_release(struct web *w);

struct bufferevent *greeting_new(struct web *w); /* for a connection that is to be accepted; NULL: no memory */
void greeting_await(struct visit *v); /* after it was accepted */
void greeting_release(struct visit *v);
/* The subject of the certificate that the client of this request has shown. False: none, or the connection is plain. */
bool greeting_subject(struct evhttp_request *req, char *out, size_t size);

#endif
