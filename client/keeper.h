/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a process between redlock and CMD that holds the connection, counts what may be believed, and stops CMD in time. It has
 * a process group of its own, so job control and signals meant for redlock or CMD never stop it; if redlock dies, it stops CMD and
 * only then lets go of the lock.
 *
 *   redlock (signals, exit code) -- SEQPACKET --> keeper (connection, deadlines) --> CMD
 *
 * To the keeper: one int, a signal to pass on. From it: struct keeper_report, STARTED at most once, then ENDED, then EOF.
 */
#ifndef CLIENT_KEEPER_H
#define CLIENT_KEEPER_H

#include "client/family.h"
#include "client/redlock.h"

struct keeper_report {
	enum { KEEPER_STARTED, KEEPER_ENDED } kind;
	int code;       /* ENDED: what redlock ends with */
	pid_t command;  /* STARTED */
	char text[512]; /* ENDED: one line for a person, or "" */
};

struct keeper_task {
	struct redlock *c; /* with nothing in flight */
	const char *name;
	struct redlock_grant grant; /* of a CHECK just answered */
	int64_t keep_ms;
	struct family_start start;
	int front; /* the keeper's end of the socket pair */
};

/* Runs in a process that was just forked for it. */
_Noreturn void keeper_main(const struct keeper_task *task);

#endif
