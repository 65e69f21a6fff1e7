/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command and all its descendants. The process that starts CMD must have no other children. It becomes the subreaper: a descendant whose parent
 * ends becomes its child. So "no children" means that no descendant is left.
 */
#ifndef CLIENT_DESCENDANTS_H
#define CLIENT_DESCENDANTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct descendants {
	pid_t command; /* 0: not started, or not known */
	bool grouped;  /* the command leads its own process group */
	bool ended;    /* the command itself was reaped */
	int status;    /* as from waitpid(2); set when ended */
};

struct descendants_start {
	char **argv;  /* NULL-terminated; looked up in $PATH */
	bool grouped; /* the command gets its own process group; otherwise it joins group */
	pid_t group;
	const char *input;    /* the standard input of the command, input_n bytes, which must fit into a pipe; NULL: that of this process */
	size_t input_n;
	const sigset_t *mask; /* the signals that are blocked when the command starts */
};

/* 0. A positive errno: the command could not be executed. A negative errno: it could not be started. It inherits the environment of the caller. */
int descendants_start(struct descendants *ret_descendants, const struct descendants_start *how) __attribute__((warn_unused_result));
/*
 * Signals the group. Without a group, or if nothing is left of it, signals every direct child. After a signal that asks for the end it sends SIGCONT,
 * so that a stopped process acts on it.
 */
void descendants_signal(const struct descendants *f, int signal);
void descendants_end(const struct descendants *f); /* by SIGTERM */
/* Sends SIGKILL to the group and to every direct child. Call it again after each child that ended, until descendants_reap returns true. */
void descendants_kill(const struct descendants *f);
/* Reaps ended children, without waiting. True: nothing is left. */
bool descendants_reap(struct descendants *f);
/* Returns how the command ended, as a shell does: its exit code, or 128 plus the number of the signal. Call it after the end. */
int descendants_code(const struct descendants *f);

#endif
