/* SPDX-License-Identifier: BSD-2-Clause */
/* What wakes the process that holds a lock for a command: a child that ended, a moment of CLOCK_BOOTTIME, which a suspend does not stop, or a descriptor. */
#ifndef CLIENT_WAKEUPS_H
#define CLIENT_WAKEUPS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct wakeups {
	int children, timer; /* signalfd of SIGCHLD, timerfd */
};

/* 0, or a negative errno. */
int wakeups_open(struct wakeups *w);
/* Sleeps until at_us, or until a child has ended or one of the n descriptors is ready, as their revents tell. False: the sleep was interrupted. */
#define WAKEUPS_MORE 4
bool wakeups_await(const struct wakeups *w, int64_t at_us, struct pollfd *more, unsigned n);

#endif
