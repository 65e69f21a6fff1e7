/* SPDX-License-Identifier: BSD-2-Clause */
/* See wakeups.h. */
#include "client/cli/run/wakeups.h"
#include "client/cli/run/descendants.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int wakeups_open(struct wakeups *w)
{
	w->children = descendants_fd();
	w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return w->children < 0 || w->timer < 0 ? -errno : 0;
}

bool wakeups_await(const struct wakeups *w, int64_t at_us, struct pollfd *more, unsigned n)
{
	struct itimerspec when = {.it_value = {at_us > 0 ? at_us / 1000000 : 0, at_us > 0 ? at_us % 1000000 * 1000 + 1 : 1}};
	struct pollfd fds[2 + WAKEUPS_MORE] = {{.fd = w->children, .events = POLLIN}, {.fd = w->timer, .events = POLLIN}};
	struct signalfd_siginfo drained;

	memcpy(fds + 2, more, n * sizeof(*more));
	timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL);
	if (poll(fds, 2 + n, -1) < 0)
		return false;
	while (read(w->children, &drained, sizeof(drained)) > 0)
		;
	memcpy(more, fds + 2, n * sizeof(*more));
	return true;
}
