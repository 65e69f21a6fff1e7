/* SPDX-License-Identifier: BSD-2-Clause */
/* The one timer of the loop. It expires when the service wants to step without an event. */
#include "daemon/main/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct daemon *d = context;
	uint64_t times;

	(void)what;
	if (read(fd, &times, sizeof(times)) < 0 && errno != EAGAIN)
		log_event(LOG_ERROR, "timer", "error=\"%s\"", strerror(errno));
	d->armed = INSTANT_NEVER;
	d->due(d);
}

/* Sets the timer only to an earlier time. A timer that expires too early costs one pass. */
void timer_arm(struct daemon *d)
{
	struct instant when;
	struct itimerspec spec = {0};
	int64_t at;

	if (!service_deadline(d->service, &when) || !instant_before(when, d->armed))
		return;
	/* An overdue deadline expires at once. The time must not be negative, and zero would disarm the timer. */
	at = when.us > 0 ? when.us : 0;
	spec.it_value.tv_sec = at / SEC;
	spec.it_value.tv_nsec = at % SEC * 1000 + 1;
	if (timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL))
		log_event(LOG_ERROR, "timer", "error=\"%s\"", strerror(errno));
	else
		d->armed = when;
}

int timer_start(struct daemon *d, void (*due)(struct daemon *d))
{
	d->due = due;
	d->armed = INSTANT_NEVER;
	d->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (d->timer_fd < 0)
		return -errno;
	d->timer_event = event_new(d->base, d->timer_fd, EV_READ | EV_PERSIST, on_timer, d);
	return d->timer_event && event_add(d->timer_event, NULL) == 0 ? 0 : -ENOMEM;
}

void timer_stop(struct daemon *d)
{
	if (d->timer_event)
		event_free(d->timer_event);
	if (d->timer_fd >= 0)
		close(d->timer_fd);
}
