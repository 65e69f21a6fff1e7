/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses the bytes of a Redis server with hiredis into one flat list of values, in memory that is reused. RESP2 only. A reply with more than RESP_VALUES_MAX
 * values or RESP_BYTES_MAX bytes of text is an error. So is anything that is no RESP.
 */
#ifndef REDIS_RESP_H
#define REDIS_RESP_H

#include "daemon/base/buf.h"
#include "proto/span.h"
#include <stdint.h>

#define RESP_VALUES_MAX 2048
#define RESP_BYTES_MAX  ((size_t)256 * 1024)

struct redisReader;

enum resp_type { RESP_STRING, RESP_ARRAY, RESP_INTEGER, RESP_NIL, RESP_STATUS, RESP_ERROR };

/* Depth first: the children of value[i] begin at i + 1, and value[i].end is the index after the last of them. */
struct resp_value {
	enum resp_type type;
	uint32_t end;
	uint32_t children; /* ARRAY */
	int64_t integer;   /* INTEGER */
	size_t at, n;      /* STRING, STATUS, ERROR: position and length of the text in bytes */
};

struct resp {
	struct resp_value *value; /* value[0] is the root */
	uint32_t count, cap;
	struct buf bytes;
	struct buf unread; /* the bytes after the last whole reply: hiredis drops what it has parsed of them */
	struct redisReader *reader;
	bool complete;
};

void resp_init(struct resp *r);
void resp_release(struct resp *r);
void resp_reset(struct resp *r); /* for a new connection: forgets all input */

/* 0 or -EPROTO. The bytes are copied. */
int resp_feed(struct resp *r, const void *p, size_t n) __attribute__((warn_unused_result));

/* 1: value[] is a reply, valid until the next resp_next. 0: more bytes are needed. -EPROTO: bad input; only resp_reset helps. */
int resp_next(struct resp *r) __attribute__((warn_unused_result));

/* After a resp_next that returned 0: the bytes of the unfinished reply. Another reader can go on from them. */
static inline struct span resp_unread(const struct resp *r)
{
	return (struct span){buf_begin(&r->unread), buf_length(&r->unread)};
}

static inline struct span resp_text(const struct resp *r, const struct resp_value *v)
{
	return (struct span){v->n ? buf_begin(&r->bytes) + v->at : "", v->n};
}

static inline bool resp_is_error(const struct resp *r)
{
	return r->value[0].type == RESP_ERROR;
}

#endif
