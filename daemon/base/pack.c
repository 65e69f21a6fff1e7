/* SPDX-License-Identifier: BSD-2-Clause */
/* All files of the daemon use one key; their headers tell the files apart. */
#include "daemon/base/pack.h"

#include "daemon/base/map.h"

uint64_t checksum(const void *p, size_t n)
{
	static const uint64_t key[2] = {UINT64_C(0x7265646c6f636b64), UINT64_C(0x2f73746174653a31)};

	return siphash(key, p, n);
}
