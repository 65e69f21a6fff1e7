/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that is preloaded into a daemon. It lets allocations fail as a test says, those of other libraries included. REDLOCK_TEST_ALLOC names a file of two
 * int64: n, when each n-th allocation fails (0 = none), and how many allocations there were since n was last set.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The functions of the C library itself. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t n);

static struct shim_alloc {
	int64_t every, seen;
} * shared;

__attribute__((constructor)) static void alloc_map(void)
{
	const char *path = getenv("REDLOCK_TEST_ALLOC");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED)
		shared = p;
}

static int refused(void)
{
	int64_t every = shared ? __atomic_load_n(&shared->every, __ATOMIC_RELAXED) : 0;

	if (!every || __atomic_add_fetch(&shared->seen, 1, __ATOMIC_RELAXED) % every)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t n)
{
	return refused() ? NULL : __libc_malloc(n);
}

void *calloc(size_t count, size_t size)
{
	return refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t n)
{
	return refused() ? NULL : __libc_realloc(p, n);
}
