/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process hands over to the next one in a restart, beside what its service writes: see records.h. Descriptors are places in `fds`. */
#ifndef DAEMON_CARRIED_H
#define DAEMON_CARRIED_H

#include "daemon/base/buf.h"
#include "daemon/base/fdlist.h"
#include "daemon/base/instant.h"
#include "daemon/systemd/systemd.h"
#include "proto/span.h"

/* Where the next process finds it: "pid:records:numbers", and the names of descriptors that the service manager keeps. */
#define CARRIED_VARIABLE "REDLOCKD_CARRIED"
#define CARRIED_RECORDS  SYSTEMD_KEPT "records"
#define CARRIED_PARCEL   SYSTEMD_KEPT "parcel"

struct net_parcel;

#define NO_PLACE SIZE_MAX

struct carried {
	uint64_t mark[2];     /* names this hand-over: once.h */
	char *runtime_dir;    /* for which it is */
	struct instant started, paused; /* the daemon; since when clients wait */
	struct net_parcel *net;
	uint64_t audit_left_out;
	bool audit_torn;
	size_t lock_fd, folder_fd; /* of the runtime directory; NO_PLACE: not handed over */
	char *web;                 /* where the web listener listens, as configured; "": nowhere */
	size_t web_fd, web_fds;    /* its first listening socket, and how many */
	struct buf records;        /* as they were read … */
	struct span rest;          /* … and those that the service has not got yet */
	struct fdlist fds;
};

struct carried *carried_new(void);

#endif
