/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON for data of the protocol: for the web, the audit log and `redlock --json`. field.def defines which fields are numbers. All others are strings,
 * even if they look like numbers: a name may be 42.
 */
#ifndef PROTO_JSON_H
#define PROTO_JSON_H

#include "proto/span.h"

/* Appends n bytes to the output of the caller. */
typedef void json_put(void *to, const char *p, size_t n);

/*
 * Writes any bytes as a string with its quotes, of at most JSON_TEXT_MAX bytes. A byte that is not part of well-formed UTF-8 becomes a lone low
 * surrogate, \udc80 to \udcff, from which it can be restored (Python: surrogateescape). Characters that are invisible, or that change the direction
 * of the text, are escaped.
 */
#define JSON_TEXT_MAX(n) (6 * (n) + 2)
void json_text(json_put *put, void *to, struct span text);

/* "name":value */
void json_member(json_put *put, void *to, struct span name, struct span value);

#endif
