/* SPDX-License-Identifier: BSD-2-Clause */
/* See background.h. */
#include "client/cli/run/background.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/param.h>
#include <unistd.h>

#define FAREWELL_MS 1000

/* --- descriptors --- */

static bool is_among(int fd, const int kept[], size_t n)
{
	while (n > 0 && kept[n - 1] != fd)
		n--;
	return n > 0;
}

void descriptors_drop(const int kept[], size_t n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), most = STDERR_FILENO;

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	for (size_t i = 0; i < n; i++)
		most = MAX(most, kept[i]);
	for (int fd = STDERR_FILENO + 1; fd < most; fd++)
		if (!is_among(fd, kept, n))
			close(fd);
	closefrom(most + 1);
}

/* --- the end of the session --- */

/* UNLOCK alone keeps a name; QUIT does all else. */
static bool keeps_name(const struct keeper_task *task)
{
	return task->in->keep_ms && task->grant.until_us;
}

bool late_quit_must(const struct keeper_task *task)
{
	return redlock_away(task->c) || (keeps_name(task) && redlock_in_flight(task->c));
}

void late_quit(const struct keeper_task *task, int asker)
{
	struct redlock *c = task->c;
	int64_t grace_ms = MAX(task->grant.ttl_ms, MAX(task->in->ttl_ms, GRACE_MS)), now;
	/* When both the grace and the lease have ended: the daemon keeps nothing of the session any longer. */
	int64_t until = MAX(redlock_now_us(), task->grant.until_us) + grace_ms * 1000;
	const int kept[] = {redlock_fd(c), asker};
	int r = 0;

	descriptors_drop(kept, 2); /* closes front, too */
	while (late_quit_must(task) && (now = redlock_now_us()) < until && !redlock_process(c)) {
		struct pollfd fd = {.fd = redlock_fd(c), .events = redlock_events(c)};
		int64_t next = MIN(until, redlock_due_us(c));

		if (late_quit_must(task))
			(void)!poll(&fd, 1, next > now ? (int)MIN((next - now) / 1000 + 1, 60000) : 0);
	}
	redlock_set_timeout(c, FAREWELL_MS);
	/* Of several names some may be kept already: their UNLOCK was answered before the connection broke. */
	for (unsigned i = 0; keeps_name(task) && !redlock_in_flight(c) && r >= 0 && i < task->names_n; i++)
		r = redlock_unlock(c, task->names[i], task->in->keep_ms);
	redlock_close(c);
}
