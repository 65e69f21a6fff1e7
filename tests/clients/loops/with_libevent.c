/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/clients/loops/scenario.h"

#include "client/loop/libevent.h"

static struct redlock_libevent watch;
static struct event_base *base;
static struct event *ticker;

static void tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	scenario_tick();
}

void loop_begin(struct redlock *c)
{
	static const struct timeval each = {.tv_usec = TICK_MS * 1000};

	base = event_base_new();
	ticker = event_new(base, -1, EV_PERSIST, tick, NULL);
	event_add(ticker, &each);
	redlock_libevent_start(&watch, base, c, scenario_ready, NULL);
}

void loop_update(void)
{
	redlock_libevent_update(&watch);
}

void loop_run(void)
{
	event_base_dispatch(base);
	event_free(ticker);
	event_base_free(base);
}

/* Nothing of the library is left in the loop: it ends by itself. */
void loop_end(void)
{
	redlock_libevent_stop(&watch);
	event_del(ticker);
}
