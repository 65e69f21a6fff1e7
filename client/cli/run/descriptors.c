/* SPDX-License-Identifier: BSD-2-Clause */
/* See descriptors.h. */
#include "client/cli/run/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ONE_BY_ONE_MAX 65536

static int range_close_at_once(int from, int to)
{
#ifdef SYS_close_range
	return (int)syscall(SYS_close_range, (unsigned int)from, (unsigned int)to, 0U);
#else
	(void)from, (void)to;
	errno = ENOSYS;
	return -1;
#endif
}

/* Linux before 5.9 has no close_range(2). */
static void range_close(int from, int to)
{
	int fd, open_max = (int)MIN(sysconf(_SC_OPEN_MAX), ONE_BY_ONE_MAX);

	if (from > to || !range_close_at_once(from, to))
		return;
	for (fd = from; fd <= to && fd < open_max; fd++)
		close(fd);
}

static int kept_next(const int kept[], size_t n, int from)
{
	int next = INT_MAX;
	size_t i;

	for (i = 0; i < n; i++)
		if (kept[i] >= from)
			next = MIN(next, kept[i]);
	return next;
}

void descriptors_drop(const int kept[], size_t n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd, next;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null >= 0)
			dup2(null, fd);
	for (fd = STDERR_FILENO + 1; (next = kept_next(kept, n, fd)) < INT_MAX; fd = next + 1)
		range_close(fd, next - 1);
	range_close(fd, INT_MAX);
}
