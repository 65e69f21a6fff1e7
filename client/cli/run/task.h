/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a process between redlock and CMD that owns the session. It waits for the lock, computes how long CMD may rely on
 * the lock, and stops CMD in time. It has its own process group, so that job control and signals for redlock or CMD do not
 * stop it. If redlock dies, the keeper stops CMD first and then ends the session. If CMD cannot be stopped, the keeper
 * holds the lock for as long as CMD lives.
 *
 *   redlock (signals, exit code) -- SEQPACKET --> keeper (session, deadlines) --> CMD
 *
 * redlock sends struct front_signal.
 * The keeper sends struct keeper_report: WAITING, GRANTED and STARTED in this order, each at most once, then ENDED, then EOF.
 */
#ifndef CLIENT_TASK_H
#define CLIENT_TASK_H

#include "client/cli/io/invocation.h"
#include "client/cli/run/descendants.h"
#include "client/lib/once.h"
#include "client/lib/redlock.h"

/* How one run of CMD for a job ended. NONE: it does not count as an attempt. */
enum attempt { ATTEMPT_DONE, ATTEMPT_FAILED, ATTEMPT_NONE };

/* What redlock sends to the keeper. */
struct front_signal {
	int number;  /* a signal for CMD. 0, which comes first: redlock now passes on signals, and CMD may start */
	bool had;    /* CMD has it already, from the terminal */
	bool ending; /* it asks redlock to end, too */
};

struct keeper_report {
	enum { KEEPER_WAITING, KEEPER_GRANTED, KEEPER_STARTED, KEEPER_ENDED } kind;
	int code;      /* ENDED: the exit code of redlock */
	bool lost;     /* ENDED: the lock was lost, and no process of CMD is left */
	unsigned name; /* GRANTED: with --any, the index of the name that is held */
	bool lingers;  /* ENDED: the keeper stays for a while, to report the end to a daemon that is away */
	pid_t command; /* STARTED */
	char session[64],
		secret[128]; /* WAITING, GRANTED: with these redlock ends the session if the keeper dies; "" without grace */
	char text[512];      /* ENDED: one line for people, or "" */
};

/* once: the records before this run, and the record of this run. */
struct keeper_once {
	struct once_records known;
	struct redlock_run run;
	int64_t begun_us;
};

struct keeper_task {
	const struct invocation *in;
	struct redlock *c;          /* opened, and not used yet */
	const char *const *names;   /* the locks that are held: all names, or with --any one of them */
	unsigned names_n;
	struct redlock_grant *grants; /* one for each name, from the last CHECK */
	struct redlock_grant grant; /* the one of grants that ends first */
	char permit[8];             /* --slots: the slot that is held. Else "" */
	struct descendants_start start;
	struct redlock_job *job; /* work: the job that is held, instead of names; NULL: locks are held */
	struct keeper_once *once; /* NULL: the command is not once */
	int front; /* the keeper's end of the socket pair */
};

/* Runs in a process that was forked for it, with all signals blocked. */
_Noreturn void keeper_main(struct keeper_task *task);

/*
 * Runs CMD under the lock of task->grant, and unlocks. CMD runs only while the lock is valid. It gets SIGTERM when a fifth of the validity is left,
 * and SIGKILL when a tenth is left. This does not depend on whether the daemon reported a loss or did not answer. Sends STARTED once. Sets the exit
 * code and the text of *ret_report.
 */
void supervise_run(struct keeper_task *task, struct keeper_report *ret_report);

#endif
