/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the linker puts in the place of the calls by which the outside gets in (see SIM_WRAP in the Makefile). A simulated world that makes one is
 * not a function of its plan: it ends at once. Only a sweep may look at the clock: how long it takes, and for
 * its first seed.
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
	fprintf(stderr, "sim: %s() was called: the outside must not get in\n", what);
	abort();
}

double sweep_clock(void)
{
	struct timespec t;

	__real_clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
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
