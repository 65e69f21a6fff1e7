/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing byte queue: append at the end, consume at the front. Memory is kept for reuse until buf_release or buf_trim. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct buf {
	char *data;        /* start of the allocation */
	size_t start, end; /* live bytes are data[start..end) */
	size_t cap;
};

void buf_init(struct buf *b);
void buf_release(struct buf *b);
char *buf_make_room(struct buf *b, size_t n); /* the slow path of buf_reserve */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_consume(struct buf *b, size_t n);
void buf_trim(struct buf *b, size_t keep); /* frees the memory if the queue is empty and has more than keep bytes */
void buf_shrink(struct buf *b, size_t n);  /* gives back n bytes of the memory of an empty queue, or all if it has no more */

/* Returns the start of at least n free bytes after the live ones. buf_commit appends what was written there. */
static inline char *buf_reserve(struct buf *b, size_t n)
{
	return b->data && b->cap - b->end >= n ? b->data + b->end : buf_make_room(b, n);
}

static inline void buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->end);
	b->end += n;
}

static inline void buf_append(struct buf *b, const void *p, size_t n)
{
	if (!n)
		return;
	memcpy(buf_reserve(b, n), p, n);
	b->end += n;
}

static inline void buf_clear(struct buf *b)
{
	b->start = b->end = 0;
}

static inline char *buf_begin(const struct buf *b)
{
	return b->start ? b->data + b->start : b->data; /* NULL + 0 is undefined in C */
}

static inline size_t buf_length(const struct buf *b)
{
	return b->end - b->start;
}

/*
 * Appends the rest of the file to b. 0, or a negative errno: -EBADMSG if it is no regular file, -EFBIG if it has more than `most` bytes.
 * Bytes that were read before an error stay in b.
 */
int file_read_whole(int fd, size_t most, struct buf *b) __attribute__((warn_unused_result));

#endif
