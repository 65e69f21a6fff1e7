/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process carries over to the next one in a restart: the root of the segment (daemon/base/segment.h) in which the service lives. All that it points to
 * stands in the segment. Descriptors are places in `fds`, which is an array in the segment as well.
 */
#ifndef DAEMON_CARRIED_H
#define DAEMON_CARRIED_H

#include "daemon/base/fdlist.h"
#include "daemon/base/instant.h"
#include "daemon/files/journal.h"
#include "daemon/store/state.h"

#include <stdint.h>

/* Where the next process finds it: "pid:segment:numbers", and the names of descriptors that the service manager keeps. */
#define CARRIED_VARIABLE "REDLOCKD_CARRIED"
#define CARRIED_SEGMENT  SYSTEMD_KEPT "segment"
#define CARRIED_PARCEL   SYSTEMD_KEPT "parcel"

struct backlog;
struct memory;
struct net_parcel;
struct service;
struct upstream_parcel;

#define NO_PLACE SIZE_MAX

/* A secret that the service wants verified, and that was not begun with. */
struct carried_verify {
	uint64_t number;
	char *user, *secret; /* NULL: there is none */
	size_t user_n, secret_n;
};

struct carried {
	uint64_t mark[2];     /* names this hand-over: once.h */
	char *runtime_dir;    /* for which it is */
	struct instant started, paused; /* the daemon; since when clients wait */
	char *keys;           /* where at the stores its keys are, as text: stores_keys */
	struct service *service;
	struct memory *memory;             /* NULL: store: redis */
	struct state state;                /* with memory */
	struct upstream_parcel *upstream;  /* NULL: store: memory */
	struct backlog *backlog;           /* calls that no store has seen */
	struct net_parcel *net;
	struct carried_verify verify;
	struct journal_mark journal;
	uint64_t audit_left_out;
	bool audit_torn;
	size_t journal_fd;                 /* NO_PLACE: there is no file */
	size_t lock_fd, folder_fd;         /* of the runtime directory; NO_PLACE: not handed over */
	char *web;                         /* where the web listener listens, as configured; "": nowhere */
	size_t web_fd, web_fds;            /* its first listening socket, and how many */
	struct fdlist fds;
};

#endif
