/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines read ahead: those of a session that has an untagged request under way. Embedded; zeroed memory is ready. */
#ifndef CORE_AHEAD_H
#define CORE_AHEAD_H

#include "daemon/base/buf.h"

#include <stdbool.h>

/* Lines, and their bytes. At either bound the session is read no further, until both fell to half. The line that reaches a bound is kept whole. */
#define READ_AHEAD_LINES 256
#define READ_AHEAD_BYTES 65536

struct ahead {
	struct buf *lines; /* each as its length and its bytes; NULL: there was none yet */
	unsigned count;
};

void ahead_release(struct ahead *a);
/* p NULL: a line that was too long. True: a bound is reached. */
bool ahead_add(struct ahead *a, const char *p, size_t n);
/* The first of them, of which there must be one, in place; *ret_line NULL: it was too long. Valid until the next ahead_add. True: both are down to half. */
bool ahead_next(struct ahead *a, char **ret_line, size_t *ret_n);

#endif
