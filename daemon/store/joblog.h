/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of jobs of a memory store, `<runtime_dir>/jobs`, in memory that outlives the process: a file that is mapped and shared. A process that is killed has
 * made each of its stores in program order, and the kernel keeps the pages. So a record is in the log when joblog_add returns, without a system call.
 *
 *   0 magic   8 version   12 0   16 seed   32 SipHash-2-4 of bytes 0 to 31   40 0
 *   64 frames, each at a multiple of 8: {u32 length, u32 check of the length, u64 SipHash-2-4 of the bytes under the seed, bytes}; then zeros
 *
 * The first 8 bytes of a frame are stored last and at once: a record is there whole, or not at all. A crash of the host may tear any page out, because
 * nothing is synced; the reader goes on behind the hole. What clients say stands in the records, so the seed is secret: nobody can write a frame into his
 * payload.
 *
 * All space is reserved before a record is added, so a full device is an error in joblog_room, before anything was done, and no SIGBUS later.
 *
 * A log that has grown to several times of what is live, or is full, is replaced by a snapshot, complete before it is renamed over the old one. That stops the
 * loop for some milliseconds a MiB of live records. There is none where more than half of the log is live. A snapshot needs the space of a second file.
 *
 * Without jobs there is no file. Errors are negative errnos. Not thread-safe.
 */
#ifndef STORE_JOBLOG_H
#define STORE_JOBLOG_H

#include "proto/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOBLOG_MOST     ((size_t)1 << 30)   /* bytes of the file */
#define JOBLOG_SPARE    ((size_t)128 << 10) /* see job_keep.h */
#define JOBLOG_RECORD   ((size_t)40 << 10)  /* bytes of the longest record: what claims to be a longer one is none, and costs the reader nothing */
#define JOBLOG_SNAPSHOT ((size_t)1 << 20)   /* a shorter log needs no snapshot */
#define JOBLOG_GROWTH   2                   /* a snapshot is due at this many times the last one */

struct joblog {
	int dir;
	int fd;          /* -1: there is no file */
	char *at;        /* mapped; NULL: there is no file */
	size_t most;     /* bytes that the file may have, 1 MiB or more; JOBLOG_MOST except in tests */
	size_t mapped;   /* bytes of the file */
	size_t size;     /* of these may be used: they are reserved */
	size_t end;      /* of the frames */
	size_t snapshot_at; /* the end at which a snapshot is wanted */
	uint64_t seed[2];   /* of the next file */
	uint64_t file_seed[2];
	int error;       /* why there is no room; 0: there was, the last time */
};

/* What a log was like that another run left. */
struct joblog_found {
	size_t records;
	size_t damaged; /* bytes between sound records */
	size_t torn;    /* bytes behind the last sound record that belong to none */
	int error;      /* the file cannot be read at all */
	bool stays;     /* … now, as the system forbids it or lacks what that takes. Else it was set aside */
};

/* dir must stay open until joblog_close. seed: secret. */
void joblog_init(struct joblog *l, int dir, const uint64_t seed[2]);
/*
 * Opens the file that another run left, and visits its records (visit NULL: counts them). Goes on behind the last one. False: there is none, or it cannot be
 * read. If it stays, this run must not write a log: its jobs would be lost.
 */
bool joblog_open(struct joblog *l, void (*visit)(void *context, struct span record), void *context, struct joblog_found *ret);
void joblog_close(struct joblog *l);   /* the file stays */
void joblog_remove(struct joblog *l);  /* and the file */
void joblog_show(struct joblog *l);    /* it stays in use, and as jobs.bad */

/* False: somebody has removed the file, or has cut it. One system call. */
bool joblog_is_there(const struct joblog *l);
/* The folder is another one now: what is there under the name of the log is set aside. */
void joblog_move(struct joblog *l, int dir);

/* Bytes in the log of a record of this length. */
size_t joblog_bytes(size_t record);
/* Makes room for so many bytes, and `spare` more. 0 or an error. There must be a file. */
int joblog_room(struct joblog *l, size_t bytes, size_t spare);
/* Appends a record for which there is room: the caller writes n bytes, at most JOBLOG_RECORD, to joblog_begin. */
char *joblog_begin(struct joblog *l);
void joblog_end(struct joblog *l, size_t n);

static inline bool joblog_wants_snapshot(const struct joblog *l, size_t bytes)
{
	return !l->at || l->end + bytes > l->snapshot_at; /* the first one makes the file */
}

/* Whether a snapshot of so many live bytes gains enough. */
static inline bool joblog_snapshot_pays(const struct joblog *l, size_t live)
{
	return 2 * live <= l->end;
}

/*
 * A snapshot: `live` bytes of records are added to ret_new, which has room for `spare` more, and whose file takes the place of the old one with joblog_replace.
 * 0 or an error: then nothing has changed, and the next snapshot is wanted a bit later.
 */
int joblog_new(struct joblog *l, size_t live, size_t spare, struct joblog *ret_new) __attribute__((warn_unused_result));
/* Of so many live bytes a snapshot gains too little: the next one is wanted later, but before the last JOBLOG_SPARE bytes of the file are used. */
void joblog_put_off(struct joblog *l, size_t live);
int joblog_replace(struct joblog *l, struct joblog *by) __attribute__((warn_unused_result));

#endif
