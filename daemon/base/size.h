/* SPDX-License-Identifier: BSD-2-Clause */
/* Arithmetic with sizes. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stddef.h>

/* The next multiple of the unit, or n itself. */
static inline size_t up_to(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static inline size_t most_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

static inline size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif
