/* SPDX-License-Identifier: BSD-2-Clause */
/* See sized.h. */
#include "client/lib/sized.h"

#include <string.h>
#include <sys/param.h>

static bool is_zero(const char *bytes, size_t n)
{
	size_t i = 0;

	while (i < n && !bytes[i])
		i++;
	return i == n;
}

const char *redlock_sized_copy(void *to, size_t n, const void *from)
{
	const char *bytes = from;
	size_t size = sizeof(size);

	if (from)
		memcpy(&size, from, sizeof(size));
	if (size < sizeof(size))
		return "the size of a struct is not set: .size = sizeof(it)";
	if (size > n && !is_zero(bytes + n, size - n))
		return "the program was compiled for a later libredlock, and asks for what this one does not know";
	memset(to, 0, n);
	if (from)
		memcpy(to, from, MIN(size, n));
	memcpy(to, &n, sizeof(n));
	return NULL;
}
