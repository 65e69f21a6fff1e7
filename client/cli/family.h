/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command and all that descends from it. The process that starts a family must have no other children. It becomes the
 * subreaper: a descendant whose parent ends becomes its child. So "no children" means that nothing is left.
 */
#ifndef CLIENT_FAMILY_H
#define CLIENT_FAMILY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FAMILY_LEFT_MAX 32

struct family {
	pid_t command; /* 0: not started, or not known */
	bool grouped;  /* the command leads a process group of its own */
	bool ended;    /* the command itself was reaped */
	int status;    /* as waitpid(2) tells it; set when ended */
	pid_t left[FAMILY_LEFT_MAX]; /* what family_mark_left found and nobody has reaped */
	size_t left_n;
};

struct family_start {
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
int family_start(struct family *ret_family, const struct family_start *how) __attribute__((warn_unused_result));
/*
 * Signals the group, or, without one or when nothing is left of it, every direct child. A signal that asks for the end is followed by SIGCONT: a stopped
 * process acts on it when it goes on.
 */
void family_signal(const struct family *f, int signal);
void family_end(const struct family *f); /* by SIGTERM */
/* SIGKILL to the group and to every direct child: call it again whenever a child has ended, until family_reap says true. */
void family_kill(const struct family *f);
/* Reaps what has ended, without waiting. True: nothing is left. */
bool family_reap(struct family *f);
/* How the command ended, as shells tell it: its exit code, or 128 and the number of the signal. Once it has ended. */
int family_code(const struct family *f);
/* Marks what the command has left in the background so far: the direct children other than the command. */
void family_mark_left(struct family *f);
/* Whether the command, or something of it that was not marked, is still to be reaped. True if nobody can tell. */
bool family_lives(const struct family *f);

/* A descriptor that is readable when a child has ended. A negative number: errno says why not. */
int family_fd(void);

#endif
