/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/clients/loops/scenario.h"

#include "client/loop/glib.h"

static struct redlock_glib *watch;
static GMainLoop *loop;

static gboolean tick(gpointer arg)
{
	(void)arg;
	scenario_tick();
	return G_SOURCE_CONTINUE;
}

void loop_begin(struct redlock *c)
{
	loop = g_main_loop_new(NULL, FALSE);
	g_timeout_add(TICK_MS, tick, NULL);
	watch = redlock_glib_start(NULL, c, scenario_ready, NULL);
}

void loop_update(void)
{
	redlock_glib_update(watch);
}

void loop_run(void)
{
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
}

void loop_end(void)
{
	redlock_glib_stop(watch);
	g_main_loop_quit(loop);
}
