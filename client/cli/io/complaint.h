/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What redlock says on standard error.
 */
#ifndef CLIENT_COMPLAINT_H
#define CLIENT_COMPLAINT_H

#include <stdbool.h>

/* Whether stderr takes a line at once. A stopped terminal does not, nor does a full pipe. */
bool stderr_is_ready(void);
/* Writes one line, "redlock: …". A reader who has closed the other end does not end this process. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));


/* Writes what was printed so far. False: standard output did not take all of it, errno says why, and output_end will say so. */
bool output_flush(void);
/* The exit code of a command that has printed: code; or EX_UNAVAILABLE, after a complaint, if standard output did not take all of it. */
int output_end(int code);

#endif
