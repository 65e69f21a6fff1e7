/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A restart that no client notices, as the old process sees it: a state machine that the loop asks at the end of each pass.
 *
 *   RESTART_NONE    no restart is under way
 *   RESTART_TRIAL   a child process checks the program and the configuration on disk (trial.h); everything goes on as usual
 *   RESTART_SECRET  a secret is being verified, and no other verification begins; everything else goes on as usual
 *   RESTART_QUIET   nothing is read from clients; the restart waits until all calls to Redis are answered, or after a moment those that a client waits for
 *   RESTART_OVER    all is written as records (records.h), and nothing may step the service any more
 *
 * By SIGUSR2 the program on disk replaces this one, in the same process, after a trial. By SIGTERM, if the service manager keeps descriptors (systemd.h), the
 * records and a parcel (parcel.h) wait there for the next process. A restart that fails before RESTART_OVER is given up, and the daemon goes on.
 * daemon/restart/carry.c and daemon/restart/carried.c show what is handed over.
 */
#ifndef DAEMON_RESTART_H
#define DAEMON_RESTART_H

#include "daemon/base/instant.h"
#include "daemon/restart/records.h"
#include "daemon/restart/trial.h"

#include <stdbool.h>

enum restart_phase { RESTART_NONE, RESTART_TRIAL, RESTART_SECRET, RESTART_QUIET, RESTART_OVER };
enum restart_way { IN_PLACE, BY_MANAGER };

struct restart {
	enum restart_phase phase;
	enum restart_way way;
	struct trial trial;
	struct instant until;  /* when the phase ends in any case; not for RESTART_TRIAL */
	struct instant paused; /* RESTART_QUIET: since when */
	bool silent;           /* RESTART_QUIET: it has ended, and no more calls are sent */
	bool returning;        /* in the next process: nothing is read from clients before the service has restored everything */
	bool failed;           /* RESTART_OVER: the service manager did not take it: this process goes on from the records, and ends */
	struct carried *handed; /* RESTART_OVER: the state to hand over … */
	int records;            /* … and its records, a memfd */
	struct secret_held {
		uint64_t number;
		char *user, *secret; /* NULL: there is none */
		size_t user_n, secret_n;
	} held;                 /* a secret whose verification has not begun; the records have it as well */
};

#endif
