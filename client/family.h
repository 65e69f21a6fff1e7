/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command and all that descends from it. The process that starts a family must be a fresh one with no other children: it becomes
 * the subreaper, so every descendant whose parent ends becomes a child of its own, and "no children" means "nothing is left".
 */
#ifndef CLIENT_FAMILY_H
#define CLIENT_FAMILY_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct family {
	pid_t command; /* 0: not started */
	bool grouped;  /* the command leads a process group of its own */
	bool ended;    /* the command itself was reaped */
	int status;    /* as waitpid(2) tells it; set when ended */
};

struct family_start {
	char **argv;  /* NULL-terminated; looked up in $PATH */
	bool grouped; /* a process group of its own, else group */
	pid_t group;
	const sigset_t *mask; /* signals that the command shall find blocked */
};

/* 0; a positive errno, with which the command could not be executed; or a negative one. The environment is that of the caller. */
int family_start(struct family *ret_family, const struct family_start *how) __attribute__((warn_unused_result));
/* To the group, or, without one, to every direct child. */
void family_signal(const struct family *f, int signal);
/* SIGKILL to the group and to every direct child: call it again whenever a child has ended, until family_reap says true. */
void family_kill(const struct family *f);
/* Reaps who has ended, without waiting. True: nobody is left. */
bool family_reap(struct family *f);

#endif
