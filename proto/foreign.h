/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Greetings of other protocols: what a browser, or a program that was given the wrong port, sends. A line that is a valid request is never looked at here, so
 * that nothing is taken from requests. It must never say that a valid request is foreign.
 */
#ifndef PROTO_FOREIGN_H
#define PROTO_FOREIGN_H

#include <stddef.h>

enum foreign {
	FOREIGN_NONE,
	FOREIGN_HTTP,   /* a request line: "POST /x HTTP/1.1" of any method, "get /x", "PRI * HTTP/2.0" */
	FOREIGN_FIELD,  /* a header field of HTTP: a token and a colon, "Host: x" */
	FOREIGN_TLS,    /* a ClientHello */
	FOREIGN_SSH,
	FOREIGN_RESP,   /* Redis: "*1", "$4" */
	FOREIGN_PROXY,  /* the PROXY protocol, version 1, or the third line of version 2 */
	FOREIGN_N
};

/* line: a whole line without its LF, or the beginning of one. */
enum foreign foreign_of(const char *line, size_t n);
/* "HTTP", "TLS": for people. Not of FOREIGN_NONE. */
const char *foreign_name(enum foreign foreign);

#endif
