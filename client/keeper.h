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

#include "client/task.h"

/* Runs in a process that was just forked for it, with all signals blocked. */
_Noreturn void keeper_main(struct keeper_task *task);

#endif
