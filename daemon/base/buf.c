/* SPDX-License-Identifier: BSD-2-Clause */
/* A byte queue in one allocation. On average it must never move more than three times the bytes that were appended. */
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUF_FIRST  ((size_t)256)
#define BUF_SPREAD ((size_t)8192) /* larger buffers do not all grow at the same lengths */

void buf_init(struct buf *b)
{
	*b = (struct buf){0};
}

void buf_release(struct buf *b)
{
	mem_free(b->data);
	buf_init(b);
}

static void buf_compact(struct buf *b)
{
	if (!b->start)
		return;
	memmove(b->data, b->data + b->start, b->end - b->start);
	b->end -= b->start;
	b->start = 0;
}

/* Hundreds of buffers may fill at the same rate, and to move a large one takes the kernel 20 us. So each has different lengths at which it grows. */
static size_t buf_spread(const struct buf *b, size_t cap)
{
	size_t quarter = cap / 4, own = ((uintptr_t)b >> 4) * 0x9e3779b97f4a7c15 >> 32;

	return cap <= BUF_SPREAD ? cap : cap - (quarter >> 8) * (own & 0xff);
}

static void buf_grow(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST, need;

	if (__builtin_add_overflow(b->end, n, &need))
		need = SIZE_MAX; /* mem_grow ends the process */
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
	if (buf_spread(b, cap) >= need)
		cap = buf_spread(b, cap);
	b->data = mem_grow(b->data, cap, 1);
	b->cap = cap;
}

char *buf_make_room(struct buf *b, size_t n)
{
	/* Moves at most as many bytes as were consumed since the last move, so the cost per byte is constant. */
	if (b->cap - b->end < n && b->start >= b->end - b->start)
		buf_compact(b);
	if (!b->data || b->cap - b->end < n)
		buf_grow(b, n);
	return b->data + b->end;
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	size_t room;
	int n;

	for (room = 128;; room = (size_t)n + 1) {
		char *at = buf_reserve(b, room);

		va_start(args, format);
		n = vsnprintf(at, room, format, args);
		va_end(args);
		assert(n >= 0);
		if ((size_t)n < room)
			break;
	}
	b->end += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->end - b->start);
	b->start += n;
	if (b->start == b->end)
		b->start = b->end = 0;
}

void buf_trim(struct buf *b, size_t keep)
{
	if (b->start == b->end && b->cap > keep)
		buf_release(b);
}

void buf_shrink(struct buf *b, size_t n)
{
	assert(b->start == b->end);
	if (b->cap <= n) {
		buf_release(b);
		return;
	}
	b->start = b->end = 0;
	b->cap -= n;
	b->data = mem_grow(b->data, b->cap, 1);
}

/* --- whole files -------------------------------------------------------------------------------------------------------- */

#define READ_SIZE 65536

int file_read_whole(int fd, size_t most, struct buf *b)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > most)
		return -EFBIG;
	do {
		n = read(fd, buf_reserve(b, READ_SIZE), READ_SIZE);
		if (n > 0)
			buf_commit(b, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}
