/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is there or the daemon is not: on exhaustion it ends with one line; leases expire safely. Thread-safe. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t n);                           /* zero-filled */
void *mem_grow(void *p, size_t count, size_t size);  /* realloc to count * size, overflow-checked; new bytes are not zeroed */
char *mem_copy(const void *p, size_t n);             /* n bytes and a NUL */

/* That end, for whoever was refused memory by a library. */
void mem_exhausted(void) __attribute__((noreturn, cold));

#endif
