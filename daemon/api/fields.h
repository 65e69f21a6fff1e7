/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of a line, from the query of a URL and from the JSON object of a body: {"wait":"30s","owner":"a"} is " wait=30s owner=a". The values of the object
 * are texts, numbers, true and false, which become yes and no, and null, which omits its member. The service decides whether a request has such a field, and
 * whether its value makes sense. Embedded.
 */
#ifndef API_FIELDS_H
#define API_FIELDS_H

#include "daemon/base/buf.h"
#include "proto/proto.h"

#define FIELDS_MOST 6000 /* bytes of all fields of a line, quoted: this leaves room for a verb and a name */

struct fields {
	struct buf text;
	uint32_t given;  /* bits of enum field */
	bool waits;      /* wait is given, and not 0 */
	int64_t heartbeat_us; /* if it is given and a duration, else -1 */
	size_t owner, owner_n; /* the place of " owner=…" in the text */
	char why[160];   /* printable ASCII: what was wrong */
};

void fields_init(struct fields *f);
void fields_release(struct fields *f);

static inline bool fields_has(const struct fields *f, enum field field)
{
	return (f->given >> field) & 1;
}

/* Each appends to the text. False: see why. */
bool fields_of_query(struct fields *f, const char *query); /* NULL: none */
bool fields_of_body(struct fields *f, struct span body);   /* nothing but blanks: none */
void fields_put(struct fields *f, const char *text);       /* " count=1", unchanged */

#endif
