/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a process between redlock and CMD that owns the session. It waits for the lock, counts how long the lock may be
 * believed, and stops CMD in time. It has a process group of its own, so that job control and signals for redlock or CMD do not
 * stop it. If redlock dies, the keeper stops CMD first and ends the session after that. If CMD cannot be stopped, the keeper
 * holds the lock for as long as CMD lives.
 *
 *   redlock (signals, exit code) -- SEQPACKET --> keeper (session, deadlines) --> CMD
 *
 * redlock sends struct front_signal.
 * The keeper sends struct keeper_report: WAITING, GRANTED and STARTED in this order, each at most once, then ENDED, then EOF.
 */
#ifndef CLIENT_KEEPER_H
#define CLIENT_KEEPER_H

#include "client/cli/run/task.h"

/* Runs in a process that was just forked for it, with all signals blocked. */
_Noreturn void keeper_main(struct keeper_task *task);

#endif
