/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The linker replaces the calls that would read clocks, chance or sockets by these (SIM_WRAP in tests/tests.mk). A simulated world that makes one is not a
 * function of its plan: the process aborts. Only a sweep may read clocks: for its duration, for its first seed, and for
 * how long a step of a daemon takes, which no world learns.
 */
#include "tests/sim/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_gettimeofday(void *ret, void *zone);
time_t __wrap_time(time_t *ret);
long __wrap_getrandom(void *p, size_t n, unsigned flags);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_poll(void *fds, unsigned long n, int timeout);

static void __attribute__((noreturn)) leak(const char *what)
{
	fprintf(stderr, "sim: %s() was called: a simulated world must not depend on the outside\n", what);
	abort();
}

static int64_t read_ns(clockid_t clock)
{
	struct timespec t;

	__real_clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t sweep_elapsed_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t sweep_processor_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

double sweep_clock(void)
{
	return (double)sweep_elapsed_ns() / 1e9;
}

uint64_t sweep_date(void)
{
	struct timespec t;

	__real_clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock, (void)ret;
	leak("clock_gettime");
}

int __wrap_gettimeofday(void *ret, void *zone)
{
	(void)ret, (void)zone;
	leak("gettimeofday");
}

time_t __wrap_time(time_t *ret)
{
	(void)ret;
	leak("time");
}

long __wrap_getrandom(void *p, size_t n, unsigned flags)
{
	(void)p, (void)n, (void)flags;
	leak("getrandom");
}

int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	leak("socket");
}

int __wrap_poll(void *fds, unsigned long n, int timeout)
{
	(void)fds, (void)n, (void)timeout;
	leak("poll");
}
