/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal on disk, <runtime_dir>/journal: what sessions with grace hold, for a next life of the daemon in the same boot. Records are opaque.
 * They are survived by the page cache: a crash of the process loses nothing that was written, a crash of the host ends the boot and with it all
 * that stands here. So nothing is ever synced.
 *
 *   0 magic   8 version   12 0   16 boot id, padded with NUL   80 CLOCK_BOOTTIME us when it was made   88 SipHash-2-4 of these
 *   96 {u32 length, u32 check of it, u64 SipHash-2-4 of the bytes, bytes} …
 *
 * A file grows by appending, one write(2) for all records of a pass, and is replaced by a snapshot of what is live when it has grown to several
 * times what the last snapshot took. A new one is whole before it takes the old one's place. A last record that is torn is cut off: the daemon
 * ended while it wrote it, and nobody was told yet of what it says. A record that is there and damaged is another matter: what it said was told,
 * perhaps that a lock is free or another's, so nothing of such a file is believed.
 *
 * Use: journal_open, journal_next until false, journal_forget; then, as the daemon goes on:
 *
 *   journal_add …; journal_write     before anything that builds on these records leaves the process
 *   if journal_wants_snapshot:       journal_begin, journal_add …, journal_end; nothing may happen to the service in between
 *   if journal_has_turned:           tell the service whether it is usable
 *
 * After a file was found a snapshot is wanted at once, and before anything is written: the file of one life is not gone on with by the next.
 *
 * As long as nothing is added there is no file and no I/O. Unusable: a write failed. The file is taken away, or made worthless, because it says
 * less than the truth from now on; records are dropped until a snapshot can be written, tried again with growing pauses.
 * See ALGORITHMS.md, Adoption.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "proto/span.h"

#define JOURNAL_BOOT_MAX  64
#define JOURNAL_FILE_MAX  ((size_t)1 << 29) /* bytes; a larger file is not ours, and is never written */
#define JOURNAL_SNAPSHOT  ((size_t)1 << 20) /* bytes; a smaller file is not worth one */
#define JOURNAL_GROWTH    4                 /* times the last snapshot; or half of what is left of the most, where that comes first */
#define JOURNAL_PAUSE_US  (1 * SEC)         /* the first pause before it is tried again; doubles */
#define JOURNAL_PAUSE_MAX_US (30 * SEC)

struct journal {
	int dir;
	int fd;             /* of the file; -1: there is none, or it cannot be written */
	char boot_id[JOURNAL_BOOT_MAX];
	struct buf pass;    /* records that are not written yet, framed */
	struct buf image;   /* those of the snapshot */
	bool in_image;      /* between begin and end */
	struct buf past;    /* the former life's file, until journal_forget */
	struct span rest;   /* of it: what journal_next has not given yet */
	size_t most;        /* bytes that it may have: JOURNAL_FILE_MAX, but for tests */
	size_t size;        /* bytes in the file */
	size_t snapshot_at; /* the size at which a snapshot is wanted */
	bool unusable;
	bool told;          /* that it is unusable */
	bool stale;         /* unusable, and the old file could not be taken away */
	bool grudge;        /* a snapshot failed, which was said */
	int64_t pause_us;
	struct instant retry_at;
};

/* boot_id: "" = unknown, then no file is believed. 0, or a negative errno when the directory cannot be opened. Says in the log what it makes of a file. */
int journal_open(struct journal *j, const char *dir, const char *boot_id, struct instant now) __attribute__((warn_unused_result));
void journal_close(struct journal *j); /* the file stays; records that are not written are lost */

/* The records of the former life, in order; borrowed until journal_forget. */
bool journal_next(struct journal *j, struct span *ret_record);
void journal_forget(struct journal *j);

void journal_add(struct journal *j, struct span record);
void journal_write(struct journal *j, struct instant now);

static inline bool journal_has_news(const struct journal *j)
{
	return buf_length(&j->pass) > 0;
}

/* Whether there is anything to write, to try again, or to tell. */
static inline bool journal_has_work(const struct journal *j)
{
	return journal_has_news(j) || j->unusable || j->told;
}

bool journal_wants_snapshot(const struct journal *j, struct instant now);
void journal_begin(struct journal *j);                     /* what is added from here on is the snapshot; what was added before is in it */
void journal_end(struct journal *j, struct instant now); /* a snapshot of nothing takes the file away */

/* Whether it became usable or unusable since it was asked last. */
bool journal_has_turned(struct journal *j, bool *ret_usable);

#endif
