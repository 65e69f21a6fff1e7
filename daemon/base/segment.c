/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a segment: this header, then blocks one behind the other, each with its class in front. What was never used is behind `next`. The file
 * grows ahead of `next` by a step at a time, so that address space alone is reserved. It must never hand out a block that another program would not find.
 */
#include "daemon/base/segment.h"

#include "daemon/base/mem.h"
#include "daemon/base/poison.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC    UINT64_C(0x31746d67736c6472) /* "rdlsgmt1" */
#define CLASSES  160
#define LAYOUT   80
#define STEP     ((size_t)1 << 20) /* by which the file grows at least */
#define ATTEMPTS 16
#define PAGE     ((uintptr_t)4096)

struct block {
	uint32_t class;
	uint32_t live;
	size_t asked; /* bytes, as long as it is live */
};
_Static_assert(sizeof(struct block) == SEGMENT_ALIGN, "blocks stay aligned");

struct vacant {
	struct vacant *next;
};

struct segment {
	uint64_t magic;
	uintptr_t base;      /* where it is mapped, always */
	char layout[LAYOUT];
	int fd;              /* of this process */
	void *root;
	uintptr_t next, end; /* what was never used; where the file ends */
	size_t live;
	size_t clears;       /* a block of so many bytes and more is cleared when it is freed */
	struct vacant *vacant[CLASSES];
};

/* Four classes to each doubling, from 16 bytes on: 16, 20 (as 32), …; the size of a class is a multiple of 16. */
static size_t class_size(unsigned class)
{
	size_t size = ((size_t)(4 + class % 4) << (class / 4)) * 4;

	return (size + SEGMENT_ALIGN - 1) & ~(SEGMENT_ALIGN - 1);
}

static unsigned class_of(size_t n)
{
	unsigned class, octave;

	if (n <= 16)
		return 0;
	octave = 63 - (unsigned)__builtin_clzll((n - 1) / 16);
	class = 4 * octave;
	while (class_size(class) < n)
		class++;
	return class;
}

static struct block *block_of(void *p)
{
	return (struct block *)((char *)p - sizeof(struct block));
}

/* Where the first block stands. */
static uintptr_t blocks_begin(const struct segment *s)
{
	return s->base + ((sizeof(*s) + SEGMENT_ALIGN - 1) & ~(SEGMENT_ALIGN - 1));
}

/* Address space that nobody uses, in the part that is for segments alone. */
static void *space_reserve(int fd, uint64_t place)
{
	const uintptr_t places = (SEGMENT_LAST - SEGMENT_FIRST) / SEGMENT_SIZE;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		void *at = mmap((void *)(SEGMENT_FIRST + (place % places + i) % places * SEGMENT_SIZE), SEGMENT_SIZE, PROT_READ | PROT_WRITE,
		                MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);

		if (at != MAP_FAILED && segment_of(at) == at)
			return at;
		if (at != MAP_FAILED)
			munmap(at, SEGMENT_SIZE); /* a kernel that does not know the flag */
	}
	return NULL;
}

/* A limit on the size of files counts for this memory as well: it would end the process where ordinary memory is still there. */
static bool is_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < SEGMENT_SIZE;
}

struct segment *segment_new(const char *layout, uint64_t place)
{
	struct segment *s;
	int fd, error;

	if (is_limited()) {
		errno = EFBIG;
		return NULL;
	}
	fd = memfd_create("redlockd", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	s = ftruncate(fd, (off_t)STEP) == 0 ? space_reserve(fd, place) : NULL;
	if (!s) {
		error = errno;
		close(fd);
		errno = error;
		return NULL;
	}
	madvise(s, SEGMENT_SIZE, MADV_DONTDUMP);
	s->magic = MAGIC;
	s->base = (uintptr_t)s;
	snprintf(s->layout, sizeof(s->layout), "%s", layout);
	s->fd = fd;
	s->next = blocks_begin(s);
	s->end = s->base + STEP;
	s->clears = SEGMENT_LARGE;
	return s;
}

/* What the file says of itself, read before it is mapped. */
static const char *header_trouble(const struct segment *head, ssize_t n, const struct stat *st, const char *layout)
{
	if (n != (ssize_t)sizeof(*head) || head->magic != MAGIC || segment_of((const void *)head->base) != (const void *)head->base ||
	    head->end < head->next || head->end - head->base > SEGMENT_SIZE || (uintptr_t)st->st_size != head->end - head->base)
		return "it is damaged";
	if (strncmp(head->layout, layout, sizeof(head->layout)) != 0)
		return "another build wrote it";
	return NULL;
}

struct segment *segment_open(int fd, const char *layout, const char **ret_why)
{
	struct segment head, *s;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || (n = pread(fd, &head, sizeof(head), 0)) < 0) {
		*ret_why = strerror(errno);
		return NULL;
	}
	*ret_why = header_trouble(&head, n, &st, layout);
	if (*ret_why)
		return NULL;
	s = mmap((void *)head.base, SEGMENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);
	if (s == MAP_FAILED || (uintptr_t)s != head.base) {
		*ret_why = s == MAP_FAILED ? strerror(errno) : "its addresses are in use";
		if (s != MAP_FAILED)
			munmap(s, SEGMENT_SIZE);
		return NULL;
	}
	madvise(s, SEGMENT_SIZE, MADV_DONTDUMP);
	s->fd = fd;
	return s;
}

void segment_close(struct segment *s)
{
	int fd = s->fd;

	memory_unpoison(s, s->end - s->base);
	munmap(s, SEGMENT_SIZE);
	close(fd);
}

int segment_fd(const struct segment *s)
{
	return s->fd;
}

void segment_set_root(struct segment *s, void *root)
{
	s->root = root;
}

void *segment_root(const struct segment *s)
{
	return s->root;
}

/* Room for n bytes behind `next`. The file doubles, so that it seldom grows. */
static void segment_extend(struct segment *s, size_t n)
{
	size_t size = s->end - s->base, more = size < 64 * STEP ? size : 64 * STEP;

	while (s->end + more - s->next < n)
		more *= 2;
	if (size + more > SEGMENT_SIZE || ftruncate(s->fd, (off_t)(size + more)) < 0)
		mem_exhausted();
	s->end += more;
}

static void *block_take(struct segment *s, unsigned class)
{
	struct vacant *vacant = s->vacant[class];
	struct block *b;
	size_t n;

	if (vacant) {
		memory_unpoison(vacant, class_size(class));
		s->vacant[class] = vacant->next;
		b = block_of(vacant);
		memory_unpoison(b, sizeof(*b));
		return b;
	}
	n = sizeof(*b) + class_size(class);
	if (s->end - s->next < n)
		segment_extend(s, n);
	b = (struct block *)s->next;
	s->next += n;
	memory_unpoison(b, n);
	return b;
}

void *segment_alloc(struct segment *s, size_t n)
{
	unsigned class;
	struct block *b;

	if (n > SEGMENT_SIZE / 2)
		mem_exhausted();
	class = class_of(n);
	b = block_take(s, class);
	b->class = class;
	b->live = 1;
	b->asked = n;
	s->live += n;
	memory_poison((char *)(b + 1) + n, class_size(class) - n);
	memory_poison(b, sizeof(*b));
	return b + 1;
}

/* The first word of a block stays, as it links the vacant ones; so do the ends of a large one, whose pages are given back. */
static void block_clear(char *p, size_t n)
{
	uintptr_t from = ((uintptr_t)p + sizeof(struct vacant) + PAGE - 1) & ~(PAGE - 1), to = ((uintptr_t)p + n) & ~(PAGE - 1);

	if (n < SEGMENT_LARGE)
		memset(p + sizeof(struct vacant), 0, n - sizeof(struct vacant));
	else if (to > from)
		madvise((void *)from, to - from, MADV_REMOVE);
}

void segment_free(void *p)
{
	struct segment *s = segment_of(p);
	struct block *b = block_of(p);
	struct vacant *vacant = p;
	size_t size;

	memory_unpoison(b, sizeof(*b));
	assert(b->live);
	b->live = 0;
	s->live -= b->asked;
	size = class_size(b->class);
	memory_unpoison(p, size);
	vacant->next = s->vacant[b->class];
	s->vacant[b->class] = vacant;
	if (size >= s->clears)
		block_clear(p, size);
	memory_poison(p, size);
	memory_poison(b, sizeof(*b));
}

void *segment_grow(void *p, size_t n)
{
	struct segment *s = segment_of(p);
	struct block *b = block_of(p);
	size_t size, asked;
	void *to;

	memory_unpoison(b, sizeof(*b));
	size = class_size(b->class);
	asked = b->asked;
	if (n <= size && class_of(n) + 1 >= b->class) {
		s->live += n - asked;
		b->asked = n;
		if (n < asked && s->clears == 0)
			memset((char *)p + n, 0, asked - n);
		memory_unpoison(p, n);
		memory_poison((char *)p + n, size - n);
		memory_poison(b, sizeof(*b));
		return p;
	}
	memory_poison(b, sizeof(*b));
	to = segment_alloc(s, n);
	memcpy(to, p, asked < n ? asked : n);
	segment_free(p);
	return to;
}

void segment_clear_freed(struct segment *s)
{
	s->clears = 0;
}

size_t segment_live(const struct segment *s)
{
	return s->live;
}

struct mapped {
	uintptr_t from, to;
};

/* What this process has mapped and may read, but for segments, by address. Returns the number of ranges. No stray is missed because this cannot be read. */
static size_t mapped_read(struct mapped *range, size_t most)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], readable[2];
	size_t n = 0;

	assert(maps);
	while (n < most && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %1[r]", &range[n].from, &range[n].to, readable) == 3 && !segment_of((void *)range[n].from))
			n++;
	fclose(maps);
	assert(n > 0 && n < most);
	return n;
}

/* Numbers are small: nothing of a program that is loaded at a random address stands there, but for shadows of sanitizers. */
#define POINTER_LEAST ((uintptr_t)1 << 44)

static bool mapped_has(const struct mapped *range, size_t n, uintptr_t word)
{
	size_t low = 0, high = word < POINTER_LEAST ? 0 : n;

	while (low < high) {
		size_t i = low + (high - low) / 2;

		if (word < range[i].from)
			high = i;
		else if (word >= range[i].to)
			low = i + 1;
		else
			return true;
	}
	return false;
}

/* Also of what a pool or an arena in the block has declared free. */
__attribute__((no_sanitize("address"))) static uintptr_t word_at(const char *p)
{
	return *(const uintptr_t *)p;
}

size_t segment_strays(const struct segment *s, void (*visit)(void *context, const void *at, size_t size, size_t offset, uintptr_t word), void *context)
{
	static struct mapped range[2048];
	const size_t ranges = mapped_read(range, sizeof(range) / sizeof(*range));
	uintptr_t at = blocks_begin(s);
	size_t found = 0;

	while (at < s->next) {
		struct block *b = (struct block *)at;
		const char *p = (const char *)(b + 1);
		size_t size, asked = 0;
		uintptr_t word;

		memory_unpoison(b, sizeof(*b));
		size = class_size(b->class);
		if (b->live)
			asked = b->asked;
		memory_poison(b, sizeof(*b));
		for (size_t i = 0; i + sizeof(word) <= asked; i += sizeof(word)) {
			word = word_at(p + i);
			if (!mapped_has(range, ranges, word))
				continue;
			visit(context, p, asked, i, word);
			found++;
		}
		at += sizeof(*b) + size;
	}
	return found;
}
