/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes hashes of texts. */
#include "daemon/redis/told.h"
#include "daemon/base/map.h"

#include <string.h>

bool told_is_new(struct told *t, const char *reason)
{
	static const uint64_t key[2];
	uint64_t hash = siphash(key, reason, strlen(reason));

	for (unsigned i = 0; i < t->count; i++)
		if (t->hash[i] == hash)
			return false;
	if (t->count == TOLD_MAX)
		return false;
	t->hash[t->count++] = hash;
	return true;
}
