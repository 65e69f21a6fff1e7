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
#ifndef CLIENT_TASK_H
#define CLIENT_TASK_H

#include "client/cli/io/invocation.h"
#include "client/cli/run/descendants.h"
#include "client/lib/once.h"
#include "client/lib/redlock.h"

/* What became of one run of CMD for a job. NONE: it counts as no attempt. */
enum attempt { ATTEMPT_DONE, ATTEMPT_FAILED, ATTEMPT_NONE };

/* What redlock sends to the keeper. */
struct front_signal {
	int number;  /* of a signal for CMD; 0, which is the first: redlock passes on signals from now on, and CMD may start */
	bool had;    /* CMD has it already, from the terminal */
	bool ending; /* it asks redlock to end, too */
};

struct keeper_report {
	enum { KEEPER_WAITING, KEEPER_GRANTED, KEEPER_STARTED, KEEPER_ENDED } kind;
	int code;      /* ENDED: the exit code of redlock */
	bool lost;     /* ENDED: the lock was lost, and nothing of CMD is left */
	unsigned name; /* GRANTED: with --any, which of the names is held */
	bool lingers;  /* ENDED: the keeper goes on for a while, until a daemon that is away has heard the end */
	pid_t command; /* STARTED */
	char session[64],
		secret[128]; /* WAITING, GRANTED: by which redlock ends the session if the keeper dies; "" without grace */
	char text[512];      /* ENDED: one line for a person, or "" */
};

/* once: the records before this run, and that of this run. */
struct keeper_once {
	struct once_records known;
	struct redlock_run run;
	int64_t begun_us;
};

struct keeper_task {
	const struct invocation *in;
	struct redlock *c;          /* opened, and not used yet */
	const char *const *names;   /* what is held: all names, or with --any one of them */
	unsigned names_n;
	struct redlock_grant *grants; /* of each, as the last CHECK told it */
	struct redlock_grant grant; /* the one of these that ends first */
	char permit[8];             /* --slots: which slot is held. Else "" */
	struct descendants_start start;
	struct redlock_job *job; /* work: what is held, in the place of names; NULL: names are */
	struct keeper_once *once; /* NULL: the command is another one */
	int front; /* the keeper's end of the socket pair */
};

/* Runs in a process that was just forked for it, with all signals blocked. */
_Noreturn void keeper_main(struct keeper_task *task);

/*
 * Runs CMD under the lock of task->grant, and unlocks. CMD runs only while the lock may be believed: it gets SIGTERM when a fifth of the validity is left, and
 * SIGKILL when a tenth is left, whether the daemon told the loss or did not answer. Sets the exit code and the text of *ret_report, which it sends once as
 * STARTED.
 */
void supervise_run(struct keeper_task *task, struct keeper_report *ret_report);

#endif
