/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds lines for a terminal piece by piece, and measures them in columns. */
#ifndef CLIENT_TERMINAL_H
#define CLIENT_TERMINAL_H

#include "proto/span.h"
#include <locale.h>

/* Appends to out at `at`, and cuts at size. Returns the new end, the index of the NUL. */
size_t text_add(char *out, size_t at, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns a locale for uselocale(3), because text is UTF-8 whatever the locale of the user is. 0: this system has none, and uselocale changes nothing. */
locale_t utf8_locale(void);

/* Returns the columns that shown text takes. A wide character takes two. */
size_t shown_width(struct span text);

#endif
