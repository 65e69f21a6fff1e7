/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes and times as a person reads them on a terminal.
 */
#ifndef CLIENT_DISPLAY_H
#define CLIENT_DISPLAY_H

#include "proto/span.h"
#include <stdint.h>

#define AGE_BYTES 32

/* "350ms", "12s", "4m10s", "3h05m", "2d04h"; negative counts as 0. Returns out. */
const char *age_text(int64_t ms, char out[AGE_BYTES]);

/*
 * Copies text, every byte that is not printable as \xHH and a backslash as two; well-formed UTF-8 stays, if people see its character as it is
 * (utf8_visible). Never splits a character or an escape; a text that does not fit ends in "...". Returns the length; out is NUL-terminated; size is at least 8.
 */
size_t shown_text(struct span text, char *out, size_t size);

#endif
