/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines read ahead: those of a session that has an untagged request under way. Embedded; zeroed memory is ready. */
#ifndef CORE_LINES_AHEAD_H
#define CORE_LINES_AHEAD_H

#include "daemon/base/arena.h"
#include "daemon/base/buf.h"

#include <stdbool.h>

/* Lines, and their bytes. At either bound the session is read no further, until both fell to half. The line that reaches a bound is kept whole. */
#define READ_AHEAD_LINES 256
#define READ_AHEAD_BYTES 65536
#define READ_AHEAD_WHOLE 16 /* times limits.output: bytes of all sessions. Beyond, each is read no further behind its first line */
#define READ_AHEAD_MOST  64 /* times limits.output: bytes of all sessions, with long first lines. Beyond, the greatest of the peer that has most is cut off */

/* A line of a client; or of one that was too long the beginning. The parser may overwrite the bytes. */
struct input {
	char *p;
	size_t n;
	bool is_cut;
};

struct lines_ahead {
	struct buf *lines; /* each as a head and its bytes; NULL: there was none yet */
	unsigned count;
};

void lines_ahead_release(struct lines_ahead *a);
size_t lines_ahead_bytes(const struct lines_ahead *a); /* that it takes */
/* True: a bound is reached. */
bool lines_ahead_add(struct lines_ahead *a, struct input line);
/* The first of them, of which there must be one, in place. Valid until the next lines_ahead_add. True: both are down to half. */
bool lines_ahead_next(struct lines_ahead *a, struct input *ret_line);
/* The line is the last that lines_ahead_next has returned. If none is left, frees memory beyond what short lines need, and the line moves into the arena. */
void lines_ahead_trim(struct lines_ahead *a, struct arena *arena, struct input *line);

#endif
