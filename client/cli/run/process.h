/* SPDX-License-Identifier: BSD-2-Clause */
/* Another process, safely distinguished from a later one with the same number. Also how this process was started, and what it has inherited. */
#ifndef CLIENT_PROCESS_H
#define CLIENT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns a descriptor that is readable when the process has ended, or a negative errno. -EPERM: this user may not signal it. */
int process_open(pid_t pid);
void process_signal(int fd, int signal);
/* Its name for people, as ps(1) shows it; "process" if it is not known. */
void process_name(pid_t pid, char *out, size_t size);
/* Its command line, cut at size; "" if it is not known. */
void process_command(pid_t pid, char *out, size_t size);

/*
 * Whether this process inherited the signal as ignored, as under nohup(1) or in a shell without job control. Then it does not ask redlock to end. The
 * kernel queues a signal that is both ignored and blocked, so signalfd(2) reports it anyway.
 */
bool signal_is_ignored(int signal);
/* Blocks these signals; ignored ones only if `ignored` is set. Returns a descriptor of signalfd(2), or a negative number and sets errno. */
int signals_take(const int *signals, size_t n, bool ignored);
/*
 * Whether a shell can continue a process that the terminal stops: a process of this session above our process group. Without one, as under ssh -t,
 * the kernel stops nothing. But the keeper is above the group of CMD, and the kernel mistakes it for a shell.
 */
bool signal_has_shell(void);

/*
 * Replaces what this process inherited, because it stays in the background. Others may wait for the end of an output or for a lock on a file. The
 * standard streams become /dev/null. Closes all other descriptors except the n in kept; -1 among these means none.
 */
void descriptors_drop(const int kept[], size_t n);

#endif
