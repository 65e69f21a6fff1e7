/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation that never fails: if memory is exhausted the process ends with one line, and its leases expire safely. Thread-safe.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "proto/span.h"

#include <stdbool.h>
#include <stddef.h>

void *mem_alloc(size_t n);                           /* zero-filled */
void *mem_grow(void *p, size_t count, size_t size);  /* realloc to count * size, overflow-checked; new bytes are not zeroed */
char *mem_copy(const void *p, size_t n);             /* n bytes and a NUL */
char *mem_text(const char *text);                    /* the same of a text; NULL: NULL */
void mem_wipe(char *secret);                         /* overwrites a text and frees it; NULL is allowed */
void mem_free(void *p);                              /* NULL is allowed */

/* An owned copy of bytes. That of none needs no memory. */
struct span mem_span(struct span text);
void mem_span_free(struct span *text); /* it is empty from then on */
void mem_span_set(struct span *text, struct span to); /* replaces it by a copy */

/* Ends the process. For callers whose library reports a lack of memory. */
void mem_exhausted(void) __attribute__((noreturn, cold));

/* Whether the text is the secret. Takes the same time wherever the two differ. */
bool secret_is(const char *secret, const char *text);

#endif
