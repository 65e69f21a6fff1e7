/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal on disk, <runtime_dir>/journal: what sessions with grace hold, for the next run of the daemon in the same boot. Records are opaque.
 * The file is never synced: the page cache survives a crash of the process, and a crash of the host ends the boot for which the file counts.
 *
 * The bytes of the file: frame.h. All records of a pass are appended with one pwrite(2). When the file has grown to several times its last snapshot, a snapshot
 * of the live records replaces it. A new file is complete before it is renamed over the old one. A torn last record is cut off: the daemon ended while it wrote
 * the record, so no answer relied on it. A file with a damaged record is ignored altogether: an answer may have relied on that record, for example that a lock
 * is free.
 *
 * A snapshot takes two milliseconds of processor time per MiB. It is written in portions, over many passes, while records go to the old file and to the new
 * one. After a snapshot of more than half of the allowed size there is no other, unless fewer records are live by then: the file grows until it is full, and is
 * given up. How much is live is estimated from the last snapshot and journal_count.
 *
 * Use: journal_open, journal_next until false, journal_forget; then, as the daemon goes on:
 *
 *   journal_add …; journal_write     before anything that relies on these records leaves the process
 *   journal_count                    before journal_wants_snapshot
 *   if journal_wants_snapshot:       journal_begin, journal_keep …, journal_end; between them, journal_add and journal_write as ever
 *   if journal_has_turned:           notify the service whether it is usable
 *
 * If journal_open found a file, a snapshot is wanted at once and must come before the first write: a run never appends to the file of the previous run.
 *
 * Without records there is no file and no I/O. The journal is unusable after a failed write. The file lacks records then, so it is removed or made worthless.
 * Records are dropped until a snapshot is written. The pause before each try grows. There is no try while the live records cannot fit. Not thread-safe. See
 * ALGORITHMS.md, Adoption.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "daemon/files/frame.h"
#include "proto/span.h"

#define JOURNAL_BOOT_MAX  FRAME_BOOT_MAX
#define JOURNAL_FILE_MAX  ((size_t)384 << 20) /* bytes; a larger file is neither read nor written. Half of it holds a million locks with short names */
#define JOURNAL_SNAPSHOT  ((size_t)1 << 20) /* bytes; a smaller file needs no snapshot */
#define JOURNAL_GROWTH    4                 /* a snapshot is due at this multiple of the last one, or when half of the room that was left is used */
#define JOURNAL_PAUSE_US  (1 * SEC)         /* the first pause after a failed write; the next ones double */
#define JOURNAL_PAUSE_MAX_US (8 * SEC)
#define JOURNAL_PAUSE_MIB_US (250 * MSEC)   /* the least pause per MiB that a new try must write: a hundred times the time of that work */

struct journal {
	int dir;
	int fd;             /* the file; -1: there is none, or it cannot be written */
	struct offload *offload; /* closes old files */
	char boot_id[JOURNAL_BOOT_MAX];
	struct buf pass;    /* framed records that are not written yet */
	bool in_image;      /* between journal_begin and journal_end */
	struct buf image;   /* framed records of the snapshot that are not written yet */
	size_t image_size;  /* bytes of all of them */
	int image_fd;       /* the new file; -1: nothing of it is written yet */
	int image_error;    /* why it cannot be written */
	struct buf past;    /* the file of the previous run, until journal_forget */
	struct span rest;   /* the part of `past` that journal_next has not returned yet */
	size_t most;        /* bytes that the file may have; JOURNAL_FILE_MAX except in tests */
	size_t size;        /* bytes in the file */
	size_t snapshot_at; /* the size at which a snapshot is wanted */
	size_t live;        /* bytes of the last snapshot, also if it could not be written */
	size_t live_count;  /* `count` at that time */
	size_t count;       /* names and sessions that the service has now */
	bool unusable;
	bool reported;      /* the last value of `unusable` that journal_has_turned has returned */
	bool stale;         /* unusable, and the old file could not be removed or made worthless */
	bool grudge;        /* a snapshot failed, and the log says so */
	int64_t pause_us;
	struct instant retry_at;
};

/*
 * boot_id: "" if unknown; any file is ignored then. Returns 0, or a negative errno if the directory cannot be opened. The log says what happens to a file that
 * is found.
 */
int journal_open(struct journal *j, const char *dir, const char *boot_id, struct instant now) __attribute__((warn_unused_result));
void journal_close(struct journal *j); /* the file stays; records that are not written are lost */

/* False: somebody has removed, cut or replaced the file. */
bool journal_is_there(const struct journal *j);
/* The file is lost; or with dir not NULL its directory, which exists again. The next snapshot, which is due at once, makes the file anew. */
void journal_begin_anew(struct journal *j, const char *dir, struct instant now);

/* The next record of the previous run; false: no more. Borrowed until journal_forget. */
bool journal_next(struct journal *j, struct span *ret_record);
void journal_forget(struct journal *j);

/* A failed write makes the journal unusable; journal_has_turned reports it. */
void journal_add(struct journal *j, struct span record);
void journal_write(struct journal *j, struct instant now);

static inline bool journal_has_news(const struct journal *j)
{
	return buf_length(&j->pass) > 0;
}

/* Whether there is anything to write, to retry, or to report. */
static inline bool journal_has_work(const struct journal *j)
{
	return journal_has_news(j) || j->in_image || j->unusable || j->reported;
}

/* The number of names and sessions that the service has now. The size of the live records is estimated from it. */
static inline void journal_count(struct journal *j, size_t count)
{
	j->count = count;
}

bool journal_wants_snapshot(const struct journal *j, struct instant now);
/* New records belong to the snapshot as well, which supersedes all earlier ones. in_image becomes false as soon as the snapshot is given up. */
void journal_begin(struct journal *j);
void journal_keep(struct journal *j, struct span record); /* belongs to the snapshot alone */
void journal_end(struct journal *j, struct instant now);  /* the new file replaces the old one; an empty snapshot removes it */

/* True: the journal became usable or unusable since the last call. */
bool journal_has_turned(struct journal *j, bool *ret_usable);

#endif
