/* SPDX-License-Identifier: BSD-2-Clause */
/* The query of a URL: "prefix=a%2Fb&limit=10". */
#ifndef WEB_QUERY_H
#define WEB_QUERY_H

#include "proto/proto.h"

/* The bytes that a part of a URL stands for; blank: '+' is a blank. False: it is malformed, or longer than size. */
bool url_decode(struct span from, bool blank, char *ret_text, size_t size, size_t *ret_n);

enum query_outcome { QUERY_FOUND, QUERY_ABSENT, QUERY_BAD };

/* The decoded bytes of a field, any but more than size of them. query NULL: there is none. BAD: it is malformed or too long. */
enum query_outcome query_get(const char *query, const char *field, char *ret_text, size_t size, size_t *ret_n);

/* The same, appended to a line as " field=value", quoted if need be. False: BAD, or the line is full. */
bool query_pass(const char *query, const char *field, char *line, size_t size);

#endif
