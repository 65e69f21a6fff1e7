/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes and decodes a state file. It must never use a byte before the checksum was verified, nor read beyond the end. */
#include "daemon/store/statefile.h"

#include "daemon/base/pack.h"

#include <assert.h>
#include <errno.h>

#define MAGIC    "redlockS"
#define VERSION  3U
#define HEADER   ((size_t)144)
#define CHECKSUM ((size_t)8)
#define NAME     ((size_t)16) /* before the bytes of a name and its value */
#define REMOTE   1U

enum {
	AT_VERSION = 8,
	AT_KIND = 12,
	AT_EPOCH = 16,
	AT_CLOCK = 24,
	AT_FENCE = 32,
	AT_WRITTEN = 40,
	AT_FLAGS = 48,
	AT_KEYFILE = 52,
	AT_COUNT = 56,
	AT_BYTES = 64,
	AT_BOOT = 72,
	AT_LEASE = 136
};

static int64_t get_i64(const char *at)
{
	return (int64_t)get_u64(at);
}

void statefile_begin(struct buf *b, const struct statefile *record)
{
	char *at;

	assert(buf_length(b) == 0);
	at = memset(buf_reserve(b, HEADER), 0, HEADER);
	memcpy(at, MAGIC, strlen(MAGIC));
	put_u32(at + AT_VERSION, VERSION);
	put_u32(at + AT_KIND, record->clean ? 'C' : 'R');
	put_u64(at + AT_EPOCH, (uint64_t)record->epoch_us);
	put_u64(at + AT_CLOCK, (uint64_t)record->clock_us);
	put_u64(at + AT_FENCE, (uint64_t)record->fence);
	put_u64(at + AT_WRITTEN, (uint64_t)record->written.us);
	put_u32(at + AT_FLAGS, record->remote ? REMOTE : 0);
	put_u32(at + AT_KEYFILE, record->keyfile);
	memcpy(at + AT_BOOT, record->boot_id, strnlen(record->boot_id, STATEFILE_BOOT_MAX - 1));
	put_u64(at + AT_LEASE, (uint64_t)record->lease_us);
	buf_commit(b, HEADER);
}

void statefile_add(struct buf *b, const struct statefile_name *name)
{
	size_t n = NAME + name->name.n + name->value.n;
	char *at = buf_reserve(b, n);

	put_u32(at, (uint32_t)name->name.n);
	put_u32(at + 4, (uint32_t)name->value.n);
	put_u64(at + 8, (uint64_t)name->until.us);
	memcpy(at + NAME, name->name.p, name->name.n);
	memcpy(at + NAME + name->name.n, name->value.p, name->value.n);
	buf_commit(b, n);
	at = buf_begin(b);
	put_u64(at + AT_COUNT, get_u64(at + AT_COUNT) + 1);
	put_u64(at + AT_BYTES, get_u64(at + AT_BYTES) + n);
}

void statefile_end(struct buf *b)
{
	uint64_t sum = checksum(buf_begin(b), buf_length(b));

	put_u64(buf_reserve(b, CHECKSUM), sum);
	buf_commit(b, CHECKSUM);
}

bool statefile_next(struct span *names, struct statefile_name *ret_name)
{
	size_t name_n, value_n;

	if (names->n < NAME)
		return false;
	name_n = get_u32(names->p);
	value_n = get_u32(names->p + 4);
	if (name_n > names->n - NAME || value_n > names->n - NAME - name_n)
		return false;
	ret_name->name = (struct span){names->p + NAME, name_n};
	ret_name->value = (struct span){names->p + NAME + name_n, value_n};
	ret_name->until = (struct instant){get_i64(names->p + 8)};
	*names = (struct span){names->p + NAME + name_n + value_n, names->n - NAME - name_n - value_n};
	return true;
}

/* What is wrong with the file, or NULL. The version is checked before the checksum, which another version may compute differently. */
static const char *record_fault(struct span bytes)
{
	size_t body;

	if (bytes.n < HEADER + CHECKSUM)
		return "cut off";
	if (memcmp(bytes.p, MAGIC, strlen(MAGIC)) != 0)
		return "not a state file";
	if (get_u32(bytes.p + AT_VERSION) != VERSION)
		return "of another version";
	body = bytes.n - CHECKSUM;
	if (checksum(bytes.p, body) != get_u64(bytes.p + body))
		return "damaged";
	if (get_u64(bytes.p + AT_BYTES) != body - HEADER || bytes.p[AT_LEASE - 1])
		return "inconsistent";
	return NULL;
}

static bool record_names_whole(const struct statefile *record)
{
	struct span names = record->names;
	struct statefile_name name;
	uint64_t count = 0;

	while (statefile_next(&names, &name))
		count++;
	return names.n == 0 && count == record->count;
}

int statefile_read(struct span bytes, struct statefile *ret_record, const char **ret_why)
{
	const char *why = record_fault(bytes);
	struct statefile r = {0};

	if (!why) {
		r.clean = get_u32(bytes.p + AT_KIND) == 'C';
		r.remote = get_u32(bytes.p + AT_FLAGS) & REMOTE;
		r.keyfile = get_u32(bytes.p + AT_KEYFILE);
		r.epoch_us = get_i64(bytes.p + AT_EPOCH);
		r.clock_us = get_i64(bytes.p + AT_CLOCK);
		r.fence = get_i64(bytes.p + AT_FENCE);
		r.lease_us = get_i64(bytes.p + AT_LEASE);
		r.written.us = get_i64(bytes.p + AT_WRITTEN);
		r.count = get_u64(bytes.p + AT_COUNT);
		r.names = (struct span){bytes.p + HEADER, bytes.n - HEADER - CHECKSUM};
		memcpy(r.boot_id, bytes.p + AT_BOOT, STATEFILE_BOOT_MAX);
		why = record_names_whole(&r) ? NULL : "inconsistent";
	}
	if (why) {
		*ret_why = why;
		return -EBADMSG;
	}
	*ret_record = r;
	return 0;
}
