/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that is preloaded into a redis-server or a daemon. It moves the wall clock as a test says; CLOCK_BOOTTIME stays true. REDLOCK_TEST_CLOCK names a
 * file of up to five int64: an offset in microseconds; a moment at which the clock stands still (0 = it runs); how much too fast it runs, in parts per million,
 * and since which moment of the true clock, in microseconds; how long the host was suspended, which CLOCK_MONOTONIC does not count. What the file lacks is 0.
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
	int64_t offset_us, frozen_us, fast_ppm, since_us, suspended_us;
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

static int64_t true_us(clockid_t id)
{
	struct timespec t;

	syscall(SYS_clock_gettime, id, &t); /* the call itself: ours would call us */
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t wall_us(void)
{
	int64_t us;

	if (shared && shared->frozen_us)
		return shared->frozen_us;
	us = true_us(CLOCK_REALTIME);
	return shared ? us + shared->offset_us + (shared->fast_ppm ? (us - shared->since_us) / 1000 * shared->fast_ppm / 1000 : 0) : us;
}

int clock_gettime(clockid_t id, struct timespec *ret_t)
{
	int64_t us;

	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		us = wall_us();
	else if (shared && shared->suspended_us && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE))
		us = true_us(id) - shared->suspended_us;
	else
		return (int)syscall(SYS_clock_gettime, id, ret_t);
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
