/* SPDX-License-Identifier: BSD-2-Clause */
/* How redlock was started: a signal that its parent had ignored, as nohup(1) and a shell without job control do, asks nothing of it. */
#ifndef CLIENT_SIGNALS_H
#define CLIENT_SIGNALS_H

#include <stdbool.h>

/* The kernel queues a signal that is both ignored and blocked, so a signalfd(2) tells it all the same. */
bool signal_is_ignored(int signal);
/*
 * Whether a shell can continue what the terminal stops here: a process of this session above the group of this one. Where there is none, as under ssh -t, the
 * kernel stops nothing; but the keeper stands above the group of CMD, and the kernel takes it for a shell.
 */
bool signal_has_shell(void);

#endif
