/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shows bytes and times to people on a terminal.
 */
#ifndef CLIENT_DISPLAY_H
#define CLIENT_DISPLAY_H

#include "proto/span.h"
#include <stdint.h>

#define AGE_BYTES 32

/* Writes "350ms", "12s", "4m10s", "3h05m" or "2d04h" to out, and returns it. Negative times count as 0. */
const char *age_text(int64_t ms, char out[AGE_BYTES]);

/*
 * Copies text to out, NUL-terminated, and returns its length. A byte that is not printable becomes \xHH, and a backslash becomes two. Well-formed
 * UTF-8 stays, if its character is visible (utf8_visible). Text that does not fit ends in "..."; no character or escape is split. size is at least 8.
 */
size_t shown_text(struct span text, char *out, size_t size);

#endif
