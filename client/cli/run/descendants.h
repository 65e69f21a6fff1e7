/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command and all that descends from it. The process that starts CMD must have no other children. It becomes the
 * subreaper: a descendant whose parent ends becomes its child. So "no children" means that nothing is left.
 */
#ifndef CLIENT_DESCENDANTS_H
#define CLIENT_DESCENDANTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct descendants {
	pid_t command; /* 0: not started, or not known */
	bool grouped;  /* the command leads a process group of its own */
	bool ended;    /* the command itself was reaped */
	int status;    /* as waitpid(2) tells it; set when ended */
};

struct descendants_start {
	char **argv;  /* NULL-terminated; looked up in $PATH */
	bool grouped; /* a process group of its own, else group */
	pid_t group;
	const char *input;    /* what the command reads from its standard input, input_n bytes, at most those of a pipe; NULL: that of this process */
	size_t input_n;
	const sigset_t *mask; /* the signals that are blocked when the command starts */
};

/*
 * 0; a positive errno: the command could not be executed; a negative errno: it could not be started. The environment is the
 * caller's.
 */
int descendants_start(struct descendants *ret_family, const struct descendants_start *how) __attribute__((warn_unused_result));
/*
 * Signals the group, or, without one or when nothing is left of it, every direct child. A signal that asks for the end is followed by SIGCONT: a stopped
 * process acts on it when it goes on.
 */
void descendants_signal(const struct descendants *f, int signal);
void descendants_end(const struct descendants *f); /* by SIGTERM */
/* SIGKILL to the group and to every direct child: call it again whenever a child has ended, until descendants_reap says true. */
void descendants_kill(const struct descendants *f);
/* Reaps what has ended, without waiting. True: nothing is left. */
bool descendants_reap(struct descendants *f);
/* How the command ended, as shells tell it: its exit code, or 128 and the number of the signal. Once it has ended. */
int descendants_code(const struct descendants *f);

#endif
