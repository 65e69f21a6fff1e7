/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs of a memory store in a file, for the next run: `jobs.db` of the state directory, a database of SQLite. Operations read and change the table in
 * memory. The file follows: one transaction writes what the jobs of a pass have become, before any answer of that pass leaves. So what was
 * acknowledged outlasts a kill -9. Nothing is synced to the device, since the loop would stand still for it: a loss of power may undo the last transactions,
 * or damage the file, which is then set aside (WAL, synchronous=OFF).
 *
 * `jobs.spare` has the space of some transactions. On a full device it goes, so that what has been done can be written. Until there is space for another, new
 * jobs and leases are refused; what runs may end. If even so a transaction fails, it is tried again now and then, and no job changes before.
 *
 * A file that is lost or damaged is replaced by one with all jobs, which has its name once it is complete: until then a run that is killed leaves the one
 * that was there, as it was before the log that is lost. Without jobs there is no file, unless one could not be made before. Errors are negative
 * errnos; see jobs_trouble.
 */
#ifndef STORE_JOB_KEEP_H
#define STORE_JOB_KEEP_H

#include "daemon/store/job_rows.h"

#define JOBS_SPARE  ((size_t)1 << 20)
#define JOBS_PATH   4096
#define JOBS_FORMER (-ENOTUNIQ) /* an earlier redlockd, which kept them otherwise, has left its file */
#define JOBS_SHUT (-ENOKEY) /* the file is written, and nobody could open it anew */
#define JOBS_SPARE_LOST (-ENOSR) /* somebody has removed or cut the spare */

struct sqlite3;
struct sqlite3_stmt;

/* How this process has left a file. Nobody else writes to it; and it never becomes smaller, except that the log may when a transaction ends. */
struct job_file_mark {
	uint64_t inode;
	int64_t size, written_ns; /* st_mtim; 0: not known */
};

struct job_file {
	char dir[JOBS_PATH];    /* "": it is not open */
	char former[JOBS_PATH]; /* where an earlier redlockd kept its jobs; "": nothing is there */
	struct sqlite3 *db;     /* NULL: there is no file yet, or it cannot be opened */
	struct sqlite3_stmt *begin, *put, *drop, *commit;
	struct job_file_mark file, log;
	int log_pages;          /* of the log that are not in the database yet */
	bool seen;              /* in this pass: they are there, and whole */
	bool spare;             /* jobs.spare is there */
	bool unread;            /* the file has jobs, and cannot be read: all about jobs is refused, and each look tries again */
	int64_t later_ms;       /* as jobs_restore was told */
	bool failed;            /* the last transaction did: no job changes before jobs_look has caught up */
	int error;              /* why jobs cannot be written; 0: they can, as far as is known */
	bool shut;              /* as the last look found, another process could not open it; this one has it open */
	int replaced;           /* why it was lost and another is to take its name; 0: that has happened */
	int lost;               /* what somebody has done to a file, or what was wrong with it; 0: nothing. The owner tells and clears it */
	bool aside;             /* what had the name is jobs.db.bad now. The owner likewise */
};

struct jobs_found {
	size_t jobs;
	int error;  /* the file cannot be read … */
	bool stays; /* … now, as the system forbids it or lacks what that takes. Else it was renamed to jobs.db.bad */
	int unwritten; /* leases end later by the clock of this run, and the file could not be told: the next run may take them to be over before they are */
};

/* What a change is to the file. */
enum job_change {
	JOB_GROWS, /* more work, or another lease */
	JOB_ENDS   /* of what runs: its end, and its renewals */
};

/* runtime_dir: where an earlier redlockd kept them. */
void job_file_init(struct job_file *f, const char *dir, const char *runtime_dir);
void job_file_close(struct job_file *f); /* the file stays */
/* What such an error means. */
const char *jobs_trouble(int error);
int job_file_trouble(const struct job_file *f); /* job_file.error, or else JOBS_SHUT: then jobs may change */
int jobs_error(const struct job_store *s); /* the same */

/* Whether a change may be made, before it is made. Else the error of the file says why. */
bool jobs_may(struct job_store *s, enum job_change change);
/* The job has changed; or it is about to be forgotten. */
void job_keep(struct job_store *s, struct job_row *j);
void job_keep_gone(struct job_store *s, struct job_row *j);
/* Something has changed that the file does not have yet. */
bool jobs_are_unwritten(const struct job_store *s);
/* Writes what has changed. 0, or the error of the file: then nothing is tried before jobs_look, since each try may have to wait for the device. */
int jobs_write(struct job_store *s);
/*
 * Tries again what has failed, also to make the spare; and if somebody has removed or cut a file, there is another then, with all jobs. Without a file: whether
 * one could be made. Now and then.
 */
void jobs_look(struct job_store *s);

/*
 * Fills an empty store from the file, which it keeps from then on. By the clock of this run leases end so much later than they say. A run that goes on with a
 * file that stays has no jobs until a look can read it.
 */
void jobs_restore(struct job_store *s, struct job_file *f, int64_t later_ms, struct jobs_found *ret);
/* Reads what could not be read so far. Now and then, before jobs_look. */
void jobs_read_again(struct job_store *s);

#endif
