/* SPDX-License-Identifier: BSD-2-Clause */
/* See quit.h. */
#include "client/lib/quit.h"
#include "client/lib/boottime.h"
#include "client/lib/conn.h"

#include <errno.h>
#include <poll.h>
#include <sys/param.h>
#include <unistd.h>

#define FAREWELL_MS 1000

static bool farewell_sent(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd, .events = POLLOUT};

	while (!conn_drain(c) && channel_unsent(&c->channel) && redlock_now_us() < until)
		(void)!poll(&fd, 1, boottime_poll_ms(until));
	return !channel_unsent(&c->channel) && !c->channel.mute;
}

/* Reads until the daemon hangs up: unread data would turn the close into a reset. */
static void farewell_await(const struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd, .events = POLLIN};
	char rest[4096];
	ssize_t n = 1;

	while (n && redlock_now_us() < until) {
		if (poll(&fd, 1, boottime_poll_ms(until)) <= 0)
			continue;
		n = recv(c->channel.fd, rest, sizeof(rest), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
	}
}

void quit_session(struct redlock *c)
{
	/* A tagged QUIT overtakes a LOCK that waits. After RESUME, QUIT must not overtake. */
	const char *quit = c->link == LINK_UP && c->pending.in_flight ? "@quit QUIT" : "QUIT";
	int64_t until = boottime_after(MIN(c->timeout_ms, FAREWELL_MS));

	if (!c->greeting.resumes || c->greeting.owner != getpid() || c->channel.fd < 0 || c->link == LINK_CONNECTING)
		return;
	/* A stopped daemon reads QUIT when it goes on. */
	if (!channel_append(&c->channel, quit, strlen(quit)) && farewell_sent(c, until) && !c->broken)
		farewell_await(c, until);
}
