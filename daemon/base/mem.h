/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation that never fails: if memory is exhausted the process ends with one line, and its leases expire safely. Thread-safe, but for a segment, which
 * one thread uses.
 *
 * What is to outlive the process (segment.h) is allocated between mem_use(segment) and mem_use of what was used before. mem_grow and mem_free see by the
 * address where a block stands.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

struct segment;

extern _Thread_local struct segment *mem_used; /* NULL: ordinary memory */

/* From now on this thread allocates there; NULL: in ordinary memory. Returns what was in use before. */
static inline struct segment *mem_use(struct segment *s)
{
	struct segment *before = mem_used;

	mem_used = s;
	return before;
}

void *mem_alloc(size_t n);                           /* zero-filled */
void *mem_grow(void *p, size_t count, size_t size);  /* realloc to count * size, overflow-checked; new bytes are not zeroed */
char *mem_copy(const void *p, size_t n);             /* n bytes and a NUL */
void mem_free(void *p);                              /* NULL is allowed */

/* Ends the process. For callers whose library reports that memory is exhausted. */
void mem_exhausted(void) __attribute__((noreturn, cold));

#endif
