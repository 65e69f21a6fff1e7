/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs of redlock.h that a caller passes begin with their size, as his compiler knew it. Those of an earlier version are shorter: what they lack is zero,
 * which is its default. Of those of a later version what this library does not know must be zero.
 */
#ifndef CLIENT_SIZED_H
#define CLIENT_SIZED_H

#include "client/lib/redlock.h"

/* Copies from, if it is not NULL, into to, a struct of n bytes; the rest of to becomes zero. Returns NULL, or what is wrong. */
const char *redlock_sized_copy(void *to, size_t n, const void *from) REDLOCK_MUST;

#endif
