/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format of a state file: little-endian; a header of fixed size, names with values and deadlines, and a checksum over all of
 * it. A file that is cut, damaged, too long or of another version is refused. Pure: no files, no clocks.
 *
 *   0 magic   8 version   12 kind ('R' running, 'C' clean)   16 epoch_us   24 clock_us   32 fence   40 written_us   48 flags (1 remote)   52 keyfile
 *   56 names  64 bytes of names   72 boot id, padded with NUL   136 lease_us   144 {u32 length of the name, u32 of the value, i64 until_us, name, value} …
 *   then u64 SipHash-2-4
 */
#ifndef STORE_STATEFILE_H
#define STORE_STATEFILE_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "proto/span.h"

#define STATEFILE_BOOT_MAX 64

struct statefile {
	bool clean;  /* the daemon ended properly; false: it runs, or crashed */
	bool remote; /* clients on other hosts could reach the daemon */
	char boot_id[STATEFILE_BOOT_MAX];
	int64_t epoch_us; /* server clock - CLOCK_BOOTTIME, in this boot */
	int64_t clock_us; /* clean: the server clock when the file was written; else: an upper bound of the server clock */
	int64_t fence;
	uint32_t keyfile; /* running: the names are in the keyfile of this id; 0: in none */
	int64_t lease_us; /* longest lease plus lock-delay that may have been granted before the file was written */
	struct instant written;
	uint64_t count;    /* number of names; set by statefile_read */
	struct span names; /* set by statefile_read, borrowed: for statefile_next */
};

/* A name that may still be held. The value identifies its holder; "" matches no holder. */
struct statefile_name {
	struct span name, value;
	struct instant until;
};

/* Writes into an empty buffer: begin, add for each name, end. */
void statefile_begin(struct buf *b, const struct statefile *record);
void statefile_add(struct buf *b, const struct statefile_name *name);
void statefile_end(struct buf *b);

/* Checks the whole file, all names included. 0, or -EBADMSG and *ret_why, a static text. */
int statefile_read(struct span bytes, struct statefile *ret_record, const char **ret_why) __attribute__((warn_unused_result));
/* The next name of record->names; false: no more. */
bool statefile_next(struct span *names, struct statefile_name *ret_name);

#endif
