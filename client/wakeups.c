/* SPDX-License-Identifier: BSD-2-Clause */
/* See wakeups.h. */
#include "client/wakeups.h"
#include "client/family.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int wakeups_open(struct wakeups *w)
{
	w->children = family_fd();
	w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return w->children < 0 || w->timer < 0 ? -errno : 0;
}

bool wakeups_await(const struct wakeups *w, int64_t at_us, struct pollfd more[2])
{
	struct itimerspec when = {.it_value = {at_us > 0 ? at_us / 1000000 : 0, at_us > 0 ? at_us % 1000000 * 1000 + 1 : 1}};
	struct pollfd fds[] = {{.fd = w->children, .events = POLLIN}, {.fd = w->timer, .events = POLLIN}, more[0], more[1]};
	struct signalfd_siginfo drained;

	timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL);
	if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
		return false;
	while (read(w->children, &drained, sizeof(drained)) > 0)
		;
	more[0] = fds[2];
	more[1] = fds[3];
	return true;
}
