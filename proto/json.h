/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON, of what the protocol carries: for the web, the audit log and `redlock --json`. field.def knows which fields are numbers; all others are texts, whatever
 * they look like: a name may be 42.
 */
#ifndef PROTO_JSON_H
#define PROTO_JSON_H

#include "proto/span.h"

/* Appends n bytes to what the caller writes to. */
typedef void json_put(void *to, const char *p, size_t n);

/*
 * A string of any bytes, with its quotes, of at most JSON_TEXT_MAX. A byte that is not part of well-formed UTF-8 becomes a lone low surrogate, \udc80 to
 * \udcff, from which it can be restored (Python: surrogateescape). A character that nobody sees, or that turns the text around it, is escaped.
 */
#define JSON_TEXT_MAX(n) (6 * (n) + 2)
void json_text(json_put *put, void *to, struct span text);

/* "name":value */
void json_member(json_put *put, void *to, struct span name, struct span value);

#endif
