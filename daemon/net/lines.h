/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cuts bytes into lines, in place. It owns no memory and no socket: the caller must put the bytes of an unfinished line in front of the bytes that follow. A
 * line ends with LF or CRLF. A line beyond the bound is reported once, as soon as it is too long. The rest of it is dropped. No request begins with a control
 * byte: a line that does is reported as soon as it begins, because the greetings of binary protocols have no LF.
 */
#ifndef NET_LINES_H
#define NET_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define LINES_BEGINNING ((size_t)256)

struct lines {
	char *at, *end; /* the bytes that are not cut yet */
	size_t max;     /* of a line, in bytes, LF included */
	bool skipping;  /* inside a line that was reported; the caller must keep this for the next bytes */
};

enum line {
	LINE_NONE,     /* [at, end) is an unfinished line, shorter than max: must come before the next bytes */
	LINE_WHOLE,    /* *ret_line, *ret_n: a line without its LF or CRLF */
	LINE_TOO_LONG, /* a line beyond the bound; *ret_line, *ret_n: how it begins, LINES_BEGINNING bytes at most */
};

enum line lines_next(struct lines *l, char **ret_line, size_t *ret_n);

#endif
