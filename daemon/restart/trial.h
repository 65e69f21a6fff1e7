/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trial: whether the program on disk would start, with the configuration on disk. It runs as a child process with --check-config before the arguments, and
 * its output is kept. --trial makes it connect to the servers. It does not check the audit log, because a daemon that continues sessions starts without it.
 * Nothing here waits. One at a time. Not thread-safe.
 */
#ifndef DAEMON_TRIAL_H
#define DAEMON_TRIAL_H

#include "daemon/base/instant.h"
#include "daemon/main/program.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sysexits.h>

#define TRIAL_US       (10 * SEC) /* a child process that takes longer is ended, and has failed */
#define TRIAL_OUTPUT_MAX 4096      /* bytes of its output that are kept */

struct trial {
	pid_t pid; /* 0: none is under way */
	int output_fd; /* a memfd: no reader can make the child wait */
	struct instant until;
};

/* TRIAL_NO_QUORUM: it would start, but too few servers accepted its connections. */
enum verdict { TRIAL_UNDER_WAY, TRIAL_PASSED, TRIAL_NO_QUORUM, TRIAL_FAILED };

#define TRIAL_EX_NO_QUORUM EX_TEMPFAIL

void trial_init(struct trial *t);
/* passed: the kinds of the sockets that the service manager has passed (passed.h); 0: none. 0 or a negative errno: the program cannot be started. */
int trial_begin(struct trial *t, const struct program *i, unsigned passed, struct instant now) __attribute__((warn_unused_result));
/* Call it repeatedly. *ret_why, unless it has passed: for people. output: the beginning of its output, with a NUL; the child process is over then. */
enum verdict trial_look(struct trial *t, struct instant now, char output[TRIAL_OUTPUT_MAX], const char **ret_why);
void trial_end(struct trial *t); /* ends a child process that is still running */

#endif
