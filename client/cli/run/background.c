/* SPDX-License-Identifier: BSD-2-Clause */
/* See background.h. */
#include "client/cli/run/background.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ONE_BY_ONE_MAX 65536
#define FAREWELL_MS    1000

/* --- descriptors --- */

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

/* --- the end of the session --- */

/* When both the grace and the lease have ended: the daemon keeps nothing of the session any longer. */
static int64_t linger_until(const struct keeper_task *task)
{
	int64_t grace_ms = MAX(task->grant.ttl_ms, MAX(task->in->ttl_ms, GRACE_MS));

	return MAX(redlock_now_us(), task->grant.until_us) + grace_ms * 1000;
}

/* UNLOCK alone keeps a name; QUIT does all else. */
static bool keeps_name(const struct keeper_task *task)
{
	return task->in->keep_ms && task->grant.until_us;
}

bool late_quit_must(const struct keeper_task *task)
{
	return redlock_away(task->c) || (keeps_name(task) && redlock_in_flight(task->c));
}

/* Of several names some may be kept already: their UNLOCK was answered before the connection broke. */
static void names_keep(const struct keeper_task *task)
{
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < task->names_n; i++)
		r = redlock_unlock(task->c, task->names[i], task->in->keep_ms);
}

void late_quit(const struct keeper_task *task, int asker)
{
	struct redlock *c = task->c;
	int64_t until = linger_until(task), now;
	const int kept[] = {redlock_fd(c), asker};

	descriptors_drop(kept, 2); /* closes front, too */
	while (late_quit_must(task) && (now = redlock_now_us()) < until && !redlock_process(c)) {
		struct pollfd fd = {.fd = redlock_fd(c), .events = redlock_events(c)};
		int64_t next = MIN(until, redlock_due_us(c));

		if (late_quit_must(task))
			(void)!poll(&fd, 1, next > now ? (int)MIN((next - now) / 1000 + 1, 60000) : 0);
	}
	redlock_set_timeout(c, FAREWELL_MS);
	if (keeps_name(task) && !redlock_in_flight(c))
		names_keep(task);
	redlock_close(c);
}
