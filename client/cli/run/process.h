/* SPDX-License-Identifier: BSD-2-Clause */
/* Another process, told apart from a later one with the same number; how this one was started, and what it has inherited. */
#ifndef CLIENT_PROCESS_H
#define CLIENT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A descriptor that is readable when the process has ended, or a negative errno: -EPERM if this user may not signal it. */
int process_open(pid_t pid);
/* Signals the process of the descriptor. */
void process_signal(int fd, int signal);
/* Its name for a person, as ps(1) shows it; "process" if nobody can tell. */
void process_name(pid_t pid, char *out, size_t size);
/* Its command line, cut at size; "" if nobody can tell. */
void process_command(pid_t pid, char *out, size_t size);

/* Whether the parent had ignored this signal, as nohup(1) and a shell without job control do: it asks nothing of redlock. The kernel queues a signal that is
 * both ignored and blocked, so a signalfd(2) tells it all the same. */
bool signal_is_ignored(int signal);
/* Blocks these signals, and those that are ignored only if asked to. A descriptor of signalfd(2), or a negative number: errno says why not. */
int signals_take(const int *signals, size_t n, bool ignored);
/*
 * Whether a shell can continue what the terminal stops here: a process of this session above the group of this one. Where there is none, as under ssh -t, the
 * kernel stops nothing; but the keeper stands above the group of CMD, and the kernel takes it for a shell.
 */
bool signal_has_shell(void);

/*
 * What this process has inherited: whoever waits for the end of an output, or for a lock of a file, is not to wait for one that stays in the background. The
 * standard streams become /dev/null. Closes all other descriptors but the n kept ones; -1 among these means none.
 */
void descriptors_drop(const int kept[], size_t n);

#endif
