/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one process hands over to the next, in a memfd: records of the journal (daemon/core/event/journal.h), each in a frame (daemon/files/frame.h). So a next
 * process of any build can read them. Descriptors are places in a separate list.
 */
#ifndef DAEMON_RECORDS_H
#define DAEMON_RECORDS_H

#include "daemon/base/buf.h"
#include "daemon/base/fdlist.h"
#include "daemon/base/instant.h"
#include "daemon/systemd/systemd.h"
#include "proto/span.h"

/* Where the next process finds it: "pid:records:numbers"; and the names of descriptors that the service manager keeps. */
#define CARRIED_VARIABLE "REDLOCKD_CARRIED"
#define CARRIED_RECORDS  SYSTEMD_KEPT "records"
#define CARRIED_PARCEL   SYSTEMD_KEPT "parcel"

struct net_parcel;

#define NO_PLACE SIZE_MAX

/* What is handed over in addition to the service's own records. Descriptors are places in `fds`. */
struct carried_web {
	char *where;    /* as configured; "": nowhere */
	size_t fd, fds; /* its first listening socket, and their number */
};

struct carried {
	uint64_t mark[2];     /* names this hand-over: once.h */
	char *runtime_dir;    /* the runtime directory to which it belongs */
	struct instant started, paused; /* the start of the daemon, and of the clients' pause */
	struct net_parcel *net;
	uint64_t audit_left_out;
	bool audit_torn;
	size_t lock_fd, folder_fd; /* of the runtime directory; NO_PLACE: not handed over */
	struct carried_web web, api; /* the listeners of listen.http and listen.api */
	struct buf records;        /* as they were read … */
	struct span rest;          /* … and those that the service has not yet taken */
	struct fdlist fds;
};

struct carried *carried_new(void);
/* Writes c without its descriptors, and the frames that the service has written. Returns a memfd, or -errno. */
int records_write(const struct carried *c, const struct buf *service) __attribute__((warn_unused_result));
/* Reads what the previous process has written. NULL: *ret_why says why, for people. The descriptor stays open. */
struct carried *records_read(int fd, const char **ret_why);
/* The next record for the service; false: no more. Borrowed until carried_free. */
bool records_next(struct carried *c, struct span *ret_record);
void carried_free(struct carried *c); /* closes nothing */

#endif
