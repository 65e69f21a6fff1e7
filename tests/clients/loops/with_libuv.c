/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/clients/loops/scenario.h"

#include "client/loop/libuv.h"

static struct redlock_libuv watch;
static uv_timer_t ticker;

static void tick(uv_timer_t *timer)
{
	(void)timer;
	scenario_tick();
}

void loop_begin(struct redlock *c)
{
	uv_timer_init(uv_default_loop(), &ticker);
	uv_timer_start(&ticker, tick, TICK_MS, TICK_MS);
	if (redlock_libuv_start(&watch, uv_default_loop(), c, scenario_ready, NULL))
		abort();
}

void loop_update(void)
{
	redlock_libuv_update(&watch);
}

void loop_run(void)
{
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	if (uv_loop_close(uv_default_loop()))
		abort();
}

/* Nothing of the library is left in the loop: it ends by itself. */
void loop_end(void)
{
	redlock_libuv_stop(&watch);
	uv_close((uv_handle_t *)&ticker, NULL);
}
