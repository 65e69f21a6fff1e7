/* SPDX-License-Identifier: BSD-2-Clause */
/* See boottime.h. */
#include "client/lib/boottime.h"
#include "client/lib/redlock.h"

#include <pthread.h>
#include <time.h>

#define POLL_MOST_MS 60000

int64_t redlock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t forked_us;

static void fork_note(void)
{
	forked_us = redlock_now_us();
}

static void __attribute__((constructor)) forks_watch(void)
{
	(void)!pthread_atfork(NULL, NULL, fork_note);
}

int64_t boottime_forked_us(void)
{
	return forked_us;
}

int64_t boottime_after(int64_t ms)
{
	int64_t now = redlock_now_us();

	return ms < 0 || ms > (INT64_MAX - now) / US_PER_MS ? INT64_MAX : now + ms * US_PER_MS;
}

int boottime_poll_ms(int64_t until_us)
{
	int64_t left = until_us - redlock_now_us();

	if (until_us == INT64_MAX)
		return -1;
	if (left <= 0)
		return 0;
	return left > INT64_C(1000) * POLL_MOST_MS ? POLL_MOST_MS : (int)(left / US_PER_MS) + 1;
}
