/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recognizes greetings of other protocols, from a browser or from a program with the wrong port. Only lines that are not valid requests are examined
 * here, so requests lose nothing. It must never call a valid request foreign.
 */
#ifndef PROTO_FOREIGN_H
#define PROTO_FOREIGN_H

#include <stddef.h>

enum foreign {
	FOREIGN_NONE,
	FOREIGN_HTTP,   /* a request line with any method: "POST /x HTTP/1.1", "get /x", "PRI * HTTP/2.0" */
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
