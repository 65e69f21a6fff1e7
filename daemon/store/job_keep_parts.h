/* SPDX-License-Identifier: BSD-2-Clause */
/* What job_keep.c and job_restore.c share: the file, whose errors are negative errnos, and the columns of its table. */
#ifndef STORE_JOB_KEEP_PARTS_H
#define STORE_JOB_KEEP_PARTS_H

#include "daemon/store/job_keep.h"

#define FILE_NAME "jobs.db"
#define NEW_NAME  "jobs.db.new" /* that is being made */
#define PATH_SIZE (JOBS_PATH + 32)

/* The parameters of PUT. The columns count from 0. */
enum { NUMBER = 1, QUEUE, ID, KIND, MS, DUE_MS, FAILED, VALUE, LOCK, PAYLOAD, PEER };

const char *job_file_path(const struct job_file *f, const char *name, char out[PATH_SIZE]);
int job_file_error(const struct job_file *f); /* of the last call of SQLite */
int job_file_open(struct job_file *f); /* -ENOENT: there is none */
void job_file_set_aside(struct job_file *f);
int job_file_statement(struct job_file *f, const char *text, struct sqlite3_stmt **ret);
void job_row_is_changed(struct job_store *s, struct job_row *j); /* the file does not have it so */

#endif
