/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into a redis-server or a daemon, moves its wall clock as a test says; CLOCK_MONOTONIC and CLOCK_BOOTTIME stay true, so its timers run on.
 * REDLOCK_TEST_CLOCK names a file of up to four int64: an offset in microseconds, a moment at which the clock stands still (0 = it runs), how much too
 * fast it runs in parts per million, and since which moment of the true clock, in microseconds. What the file lacks is 0.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct shim_clock {
	int64_t offset_us, frozen_us, fast_ppm, since_us;
};

static const volatile struct shim_clock *shared;

__attribute__((constructor)) static void clock_map(void)
{
	static const struct shim_clock real;
	const char *path = getenv("REDLOCK_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shared), PROT_READ, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	shared = p == MAP_FAILED ? &real : p;
}

static int64_t wall_us(void)
{
	struct timespec t;
	int64_t us;

	if (shared && shared->frozen_us)
		return shared->frozen_us;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t); /* the call itself: ours would call us */
	us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
	return shared ? us + shared->offset_us + (shared->fast_ppm ? (us - shared->since_us) / 1000 * shared->fast_ppm / 1000 : 0) : us;
}

int clock_gettime(clockid_t id, struct timespec *ret_t)
{
	int64_t us;

	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, id, ret_t);
	us = wall_us();
	*ret_t = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	return 0;
}

int gettimeofday(struct timeval *restrict ret_tv, void *restrict zone)
{
	int64_t us = wall_us();

	(void)zone;
	*ret_tv = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
	return 0;
}

time_t time(time_t *ret_t)
{
	time_t t = wall_us() / 1000000;

	if (ret_t)
		*ret_t = t;
	return t;
}
