/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a process between redlock and CMD that owns the session: it waits for the lock, counts what may be believed, and stops
 * CMD in time. It has a process group of its own, so job control and signals meant for redlock or CMD never stop it; if redlock
 * dies, it stops CMD and only then ends the session, so that no grace outlasts the one it was for.
 *
 *   redlock (signals, exit code) -- SEQPACKET --> keeper (session, deadlines) --> CMD
 *
 * To the keeper: one int, a signal to pass on; the first is 0: signals are passed on from now on, CMD may start. From it, in this
 * order: struct keeper_report WAITING, GRANTED, STARTED, each at most once, then ENDED, then EOF.
 */
#ifndef CLIENT_KEEPER_H
#define CLIENT_KEEPER_H

#include "client/cli.h"
#include "client/family.h"

struct keeper_report {
	enum { KEEPER_WAITING, KEEPER_GRANTED, KEEPER_STARTED, KEEPER_ENDED } kind;
	int code;                      /* ENDED: what redlock ends with */
	bool lingers;                  /* ENDED: it goes on for a while, to say what a daemon that is away or stopped has still to hear */
	pid_t command;                 /* STARTED */
	char session[64], secret[128]; /* WAITING, GRANTED: for RESUME, should the keeper die; "" without grace */
	char text[512];                /* ENDED: one line for a person, or "" */
};

struct keeper_task {
	const struct invocation *in;
	struct redlock *c;          /* just opened */
	struct redlock_grant grant; /* for keeper_hold: of a CHECK just answered */
	struct family_start start;
	int front; /* the keeper's end of the socket pair */
};

/* Runs in a process that was just forked for it, with all signals blocked. */
_Noreturn void keeper_main(struct keeper_task *task);

/* Runs CMD under the lock, and unlocks. *ret_report: what it ended with. */
void keeper_hold(const struct keeper_task *task, struct keeper_report *ret_report);

#endif
