/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a request for a lock or a permit tells others of itself: its note=, a text for people, and its trace=, by which a span elsewhere can link to it.
 * Only a request that has them takes memory for them.
 */
#ifndef CORE_REMARK_H
#define CORE_REMARK_H

#include "proto/proto.h"

struct remark {
	struct span note, trace; /* "": none. A trace has TRACE_BYTES */
};

/* What is left of a remark that was read from bytes of another process or run: a trace that is none is left out. */
struct remark remark_read(struct span note, struct span trace);
/* Its bytes, the note first; to has room for as many as both have. */
void remark_write(char *to, struct remark remark);
/* note= and trace=, as far as there are any. */
void reply_remark(struct reply *r, struct remark remark);

/* A copy. */
struct kept_remark {
	char *bytes; /* NULL: empty */
	uint16_t note_n;
	bool traced;
};

void kept_remark_set(struct kept_remark *k, struct remark remark); /* in place of the present one */
void kept_remark_release(struct kept_remark *k);

static inline struct remark remark_of(const char *bytes, size_t note_n, bool traced)
{
	return (struct remark){note_n > 0 ? (struct span){bytes, note_n} : SPAN(""), traced ? (struct span){bytes + note_n, TRACE_BYTES} : SPAN("")};
}

static inline struct remark kept_remark(const struct kept_remark *k)
{
	return remark_of(k->bytes, k->note_n, k->traced);
}

#endif
