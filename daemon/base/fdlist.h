/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that go from one process to the next. The numbers may differ in the next process, so records refer to places in the list. The array is memory of
 * mem.h. Not thread-safe.
 */
#ifndef BASE_FDLIST_H
#define BASE_FDLIST_H

#include <stddef.h>

struct fdlist {
	int *fd; /* -1: it was taken */
	size_t n, cap;
};

size_t fdlist_add(struct fdlist *l, int fd);     /* returns its place */
int fdlist_take(struct fdlist *l, size_t place); /* the caller owns it from then on. -1: there is none, or it was taken before */
void fdlist_release(struct fdlist *l);           /* frees the array; closes nothing */
void fdlist_close(struct fdlist *l);             /* the same, and closes all that were not taken */

#endif
