/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and checks bytes in memory. It must never read beyond them. It does not know files. */
#include "daemon/files/frame.h"

#include "daemon/base/pack.h"

#include <string.h>

#define MAGIC   "redlockJ"
#define VERSION 1U
#define HEAD    ((size_t)16) /* before the bytes of a record */

enum { AT_VERSION = 8, AT_BOOT = 16, AT_MADE = 80, AT_SUM = 88 };

static uint32_t length_check(const char *frame)
{
	return (uint32_t)checksum(frame, 4);
}

void frame_append(struct buf *b, struct span record)
{
	char *at = buf_reserve(b, HEAD + record.n);

	put_u32(at, (uint32_t)record.n);
	put_u32(at + 4, length_check(at));
	put_u64(at + 8, checksum(record.p, record.n));
	memcpy(at + HEAD, record.p, record.n);
	buf_commit(b, HEAD + record.n);
}

enum frame frame_next(struct span *bytes, struct span *ret_record)
{
	size_t n;

	if (bytes->n < HEAD)
		return FRAME_TORN;
	n = get_u32(bytes->p);
	if (get_u32(bytes->p + 4) != length_check(bytes->p))
		return FRAME_DAMAGED;
	if (n > bytes->n - HEAD)
		return FRAME_TORN;
	if (get_u64(bytes->p + 8) != checksum(bytes->p + HEAD, n))
		return FRAME_DAMAGED;
	*ret_record = (struct span){bytes->p + HEAD, n};
	*bytes = (struct span){bytes->p + HEAD + n, bytes->n - HEAD - n};
	return FRAME_WHOLE;
}

void frame_header_put(char out[FRAME_HEADER], const char *boot_id, struct instant now)
{
	memset(out, 0, FRAME_HEADER);
	memcpy(out, MAGIC, strlen(MAGIC));
	put_u32(out + AT_VERSION, VERSION);
	memcpy(out + AT_BOOT, boot_id, strnlen(boot_id, FRAME_BOOT_MAX - 1));
	put_u64(out + AT_MADE, (uint64_t)now.us);
	put_u64(out + AT_SUM, checksum(out, AT_SUM));
}

const char *frame_header_fault(struct span file)
{
	if (file.n == 0 || span_starts(file, SPAN(FRAME_SPOILT)))
		return "given up when it could not be written";
	if (file.n < FRAME_HEADER)
		return "cut off";
	if (memcmp(file.p, MAGIC, strlen(MAGIC)) != 0)
		return "not a journal";
	if (get_u32(file.p + AT_VERSION) != VERSION)
		return "of another version";
	if (checksum(file.p, AT_SUM) != get_u64(file.p + AT_SUM) || file.p[AT_MADE - 1])
		return "damaged";
	return NULL;
}

/* CLOCK_BOOTTIME never goes back within a boot, so a file that was made later than now is of another boot. */
bool frame_header_is_of(struct span file, const char *boot_id, struct instant now)
{
	return *boot_id && strcmp(file.p + AT_BOOT, boot_id) == 0 && now.us >= (int64_t)get_u64(file.p + AT_MADE);
}
