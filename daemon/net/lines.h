/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cuts bytes into lines, in place. It owns no memory and no socket: the caller brings what is unfinished back, in front of
 * the bytes that follow it. A line ends with LF or CRLF. One that is longer than the bound is told once, when its LF has
 * come; until then its bytes are dropped.
 */
#ifndef NET_LINES_H
#define NET_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct lines {
	char *at, *end; /* what is not yet cut */
	size_t max;     /* bytes of a line, LF included */
	bool skipping;  /* inside a line that is too long: carried over to the bytes that follow */
};

enum line {
	LINE_NONE,     /* [at, end) is an unfinished line, shorter than max; bring it back with more bytes */
	LINE_WHOLE,    /* *ret_line, *ret_n: without its end */
	LINE_TOO_LONG, /* one has gone by */
};

enum line lines_next(struct lines *l, char **ret_line, size_t *ret_n);

#endif
