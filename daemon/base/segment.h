/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A segment is memory that outlives the process: a memfd (memfd_create(2)) at an address of its own. A later program maps it at the same address, so every
 * pointer from the segment into the segment stays valid. Pointers to anything else are worthless there: segment_strays finds them.
 *
 * Blocks are aligned to 16 bytes, and are of classes of sizes, four to each doubling; a freed block is used again for its class. Blocks of SEGMENT_LARGE bytes
 * and more give their pages back when they are freed. Memory that is exhausted ends the process, as in mem.h. All segments stand in a part of the address
 * space where nothing else stands, so an address tells its segment. Not thread-safe.
 */
#ifndef BASE_SEGMENT_H
#define BASE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_ALIGN ((size_t)16)
#define SEGMENT_LARGE ((size_t)64 * 1024)

struct segment; /* stands at the beginning of the memory itself */

/*
 * layout: names the structures that stand in it (layout.h); at most 79 bytes. place: a random number, so that its address is as hard to guess as all others.
 * NULL with errno: the system lends none.
 */
struct segment *segment_new(const char *layout, uint64_t place);
/* Maps the segment behind fd, which the segment owns from then on, unless it fails: NULL, and *ret_why says why, for people. */
struct segment *segment_open(int fd, const char *layout, const char **ret_why);
void segment_close(struct segment *s); /* takes the memory out of this process, and closes the descriptor */
int segment_fd(const struct segment *s); /* close-on-exec */

/* What the next program begins with. */
void segment_set_root(struct segment *s, void *root);
void *segment_root(const struct segment *s);

#define SEGMENT_SIZE  ((uintptr_t)1 << 36) /* address space of one; memory is taken as it is needed */
#define SEGMENT_FIRST ((uintptr_t)0x200000000000)
#define SEGMENT_LAST  ((uintptr_t)0x500000000000)

/* The segment of a block; NULL: it stands in no segment. */
static inline struct segment *segment_of(const void *p)
{
	uintptr_t at = (uintptr_t)p;

	return at - SEGMENT_FIRST < SEGMENT_LAST - SEGMENT_FIRST ? (struct segment *)(at & ~(SEGMENT_SIZE - 1)) : NULL;
}

void *segment_alloc(struct segment *s, size_t n); /* not zeroed */
void *segment_grow(void *p, size_t n);            /* of a segment; new bytes are not zeroed */
void segment_free(void *p);                       /* of a segment */
size_t segment_live(const struct segment *s);     /* bytes of the blocks in use */

/* From now on the bytes of a block are zeroed when it is freed: what its owner left there is then no stray of the next one. Slow: for tests. */
void segment_clear_freed(struct segment *s);

/*
 * Visits each aligned word of a live block that may be a pointer to memory of this process outside the segment: it is read as an address, and something is
 * mapped there. A block is `size` bytes at `at`, and the word stands `offset` bytes behind. Returns their number. Slow: for tests.
 */
size_t segment_strays(const struct segment *s, void (*visit)(void *context, const void *at, size_t size, size_t offset, uintptr_t word), void *context);

#endif
