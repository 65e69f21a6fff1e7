/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of all files of a folder, as a process that is killed leaves them. */
#ifndef SIM_FILES_H
#define SIM_FILES_H

#include "daemon/base/buf.h"
#include "tests/sim/plan/stream.h"

#define FILES_MAX 12

struct files {
	unsigned count;
	struct file_left {
		char name[32];
		struct buf bytes;
	} file[FILES_MAX];
};

void files_read(struct files *f, const char *dir);        /* replaces what was there */
void files_write(const struct files *f, const char *dir); /* into a folder, in the place of all that is there */
void files_release(struct files *f);
/*
 * The process has made some of its stores since `before`, in whatever order. They were stores of 8 bytes, to files that are mapped. old_percent: of them were
 * not made.
 */
void files_tear(struct files *f, const struct files *before, struct stream *s, unsigned old_percent);
void folder_remove(const char *dir); /* if it is there */

#endif
