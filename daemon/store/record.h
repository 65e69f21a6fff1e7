/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands in a state file, as bytes. Little-endian, one size of header, names with their values and deadlines, and a checksum over all of
 * it: a file that is cut, flipped, longer or of another version is not a record. Pure: no files, no clocks.
 *
 *   0 magic   8 version   12 kind ('R' running, 'C' clean)   16 epoch_us   24 clock_us   32 fence   40 written_us   48 flags (1 remote)
 *   56 names  64 bytes of names   72 boot id, padded with NUL   136 lease_us   144 {u32 length of the name, u32 of the value, i64 until_us, name, value} …
 *   then u64 SipHash-2-4
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "proto/span.h"

#define RECORD_BOOT_MAX 64

struct record {
	bool clean;  /* the daemon ended as it should; else it runs, or crashed */
	bool remote; /* clients of other hosts could reach it */
	char boot_id[RECORD_BOOT_MAX];
	int64_t epoch_us; /* server clock - CLOCK_BOOTTIME, in this boot */
	int64_t clock_us; /* clean: the server clock when it was written; running: never passed by it */
	int64_t fence;
	int64_t lease_us; /* no promise that was given until then lasts longer */
	struct instant written;
	uint64_t count;    /* of names: filled in by record_end and record_read */
	struct span names; /* set by record_read, borrowed: for record_next */
};

/* A name that is still believed. Whoever held it proves that by its value; "" is nobody's. */
struct record_name {
	struct span name, value;
	struct instant until;
};

/* Into an empty buffer: begin, add each name, end. */
void record_begin(struct buf *b, const struct record *record);
void record_add(struct buf *b, const struct record_name *name);
void record_end(struct buf *b);

/* 0, or -EBADMSG and what is wrong with it. All names are known to be whole afterwards. */
int record_read(struct span bytes, struct record *ret_record, const char **ret_why) __attribute__((warn_unused_result));
/* The next of record->names, false at their end. */
bool record_next(struct span *names, struct record_name *ret_name);

#endif
