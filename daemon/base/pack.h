/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in files, little-endian, at any address; and the checksum of the bytes of a file. */
#ifndef BASE_PACK_H
#define BASE_PACK_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void put_u32(char *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void put_u64(char *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint32_t get_u32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t get_u64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

/* SipHash-2-4 under a public key: it detects damage, not forgery. Only the user of the daemon may write these files. */
uint64_t checksum(const void *p, size_t n);

#endif
