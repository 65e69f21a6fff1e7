/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of the memory store are written in an order that the compiler may not change: __atomic_signal_fence() says so, and each call of the system. The
 * simulator compiles their sources once more, with this file in front of each: a process may be killed at each fence, and before the folder changes. See
 * store.h.
 */
#ifndef SIM_KILL_POINT_H
#define SIM_KILL_POINT_H

#include <stdio.h>
#include <unistd.h>

void kill_point(void);
#define __atomic_signal_fence(order) kill_point()
#define renameat(...)                (kill_point(), renameat(__VA_ARGS__))
#define unlinkat(...)                (kill_point(), unlinkat(__VA_ARGS__))

#endif
