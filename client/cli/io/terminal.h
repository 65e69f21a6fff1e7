/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of a terminal: put together piece by piece, and measured in columns. */
#ifndef CLIENT_TERMINAL_H
#define CLIENT_TERMINAL_H

#include "proto/span.h"
#include <locale.h>

/* Appends to out at `at`, and cuts at size. Returns the new end, where the NUL stands. */
size_t text_add(char *out, size_t at, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* For uselocale(3): texts are UTF-8, whatever the locale of the user is. 0: this system has no such tables, and uselocale changes nothing. */
locale_t utf8_locale(void);

/* How many columns shown text takes: a wide character two. */
size_t shown_width(struct span text);

#endif
