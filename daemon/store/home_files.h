/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the home of a memory store has in the runtime directory, for the next run: the jobs (joblog.h), and the rate limits, `rates-<id>` (keyfile.h). Both are
 * whole at any moment, so an end and a crash are the same to them.
 *
 * Use, in this order: home_files_open; memory_new or memory_adopt with it; memory_restore_home or memory_go_on_home; the first call; memory_free or
 * memory_pack; home_files_close. Not thread-safe.
 */
#ifndef STORE_HOME_FILES_H
#define STORE_HOME_FILES_H

#include "daemon/base/instant.h"
#include "daemon/store/job_keep.h"

struct keyfile;
struct memory;

struct home_files {
	int dir;
	struct keyfile *rates; /* NULL: they end with the process … */
	int rates_error;       /* … a negative errno */
	struct joblog jobs;
};

struct home_found {
	struct jobs_found jobs;
	size_t rates;
	int rates_error; /* those of the run before are not known: see keyfile_fault() … */
	uint32_t rates_id; /* … of this file */
};

/* What was known of the run before, for its leases and limits. */
struct home_past {
	struct jobs_past jobs;
	bool known;           /* its clock */
	int64_t shift_us;     /* known: from its instants to ours */
};

/* id: a number that no other run has had; seed: secret. 0, or a negative errno if the folder cannot be opened. */
int home_files_open(struct home_files *f, const char *dir, uint32_t id, const uint64_t seed[2]) __attribute__((warn_unused_result));
void home_files_close(struct home_files *f);

/* What became of the files of a store that is in use. */
struct home_sight {
	int jobs;            /* 0, or a negative errno: their log is lost, and cannot be written anew */
	bool rates_gone;     /* their file is lost: they end with the process from now on */
	bool rates_cut;      /* what is mapped cannot be read any more: the process must end */
};
/* Looks after the files, and writes the log of jobs anew where it is lost. dir: the folder that is there now in place of the former one; or NULL. */
void memory_look_home(struct memory *m, struct home_files *f, const char *dir, struct home_sight *ret);

void memory_restore_home(struct memory *m, struct home_files *f, const struct home_past *past, struct instant now, struct home_found *ret);
/* Returns what jobs_go_on does. */
int memory_go_on_home(struct memory *m, struct home_files *f) __attribute__((warn_unused_result));

#endif
