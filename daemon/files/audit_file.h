/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of the audit log. The lines of a pass of the loop are one write. Lines that cannot be written are counted and left out, and the next line that can
 * be written says how many. So a full disk neither stops the daemon nor delays a client. If a full disk cuts a line off, its first part is removed. Where that
 * is impossible, as in a pipe, it gets a line end before the next line.
 */
#ifndef AUDIT_FILE_H
#define AUDIT_FILE_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "proto/span.h"

struct audit_file {
	const char *path; /* borrowed; NULL: no audit log */
	int fd;           /* -1: not open */
	struct buf lines; /* of this pass */
	unsigned count;   /* their number */
	uint64_t left_out; /* since the last line that was written */
	bool torn;         /* the file ends in the middle of a line */
	bool failing;      /* it could not be opened, or the last write failed */
	struct instant quiet_until; /* no log line about a failure before this */
};

/* Opens the file, or makes it with mode 0640. 0 or -errno. */
int audit_file_open(struct audit_file *f, const char *path) __attribute__((warn_unused_result));
/* Whether audit_file_open would succeed; makes no file. 0 or -errno. */
int audit_file_check(const char *path) __attribute__((warn_unused_result));
/* After a rotation. If the file cannot be opened, lines are left out until it can. */
void audit_file_reopen(struct audit_file *f, struct instant now);
/* Makes the file again if somebody has removed it, and logs that. Retries a file that fails. A rotation renames the file, and a reload follows. */
void audit_file_look(struct audit_file *f, struct instant now, int64_t wall_us);
void audit_file_close(struct audit_file *f);

/* rest: the line after its time, from the comma on. wall_us: since 1970. */
void audit_file_add(struct audit_file *f, struct span rest, int64_t wall_us);
void audit_file_write(struct audit_file *f, struct instant now, int64_t wall_us); /* all lines that were added */

static inline bool audit_file_has_news(const struct audit_file *f)
{
	return f->count > 0;
}

/* Lines are left out, or would be. */
static inline bool audit_file_is_lost(const struct audit_file *f)
{
	return f->path && f->failing;
}

#endif
