/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock in a loop of glib. After each call that sends, call redlock_glib_update; before redlock_close, redlock_glib_stop. The loop calls ready
 * whenever something may have arrived. Then take the pushes. If redlock_in_flight returns false, take the answer by redlock_finish. r is 0, or the
 * negative errno that has ended the connection. ready may send, stop, and close.
 */
#ifndef REDLOCK_GLIB_H
#define REDLOCK_GLIB_H

#include <glib.h>
#include <poll.h>
#include <redlock.h>

struct redlock_glib {
	GSource source; /* must be first */
	gpointer tag;   /* for the descriptor; NULL: none is watched */
	struct redlock *c;
	void (*ready)(void *arg, int r);
	void *arg;
};

static inline void redlock_glib_update(struct redlock_glib *l)
{
	int64_t due = redlock_due_us(l->c);
	short events = redlock_events(l->c);

	if (l->tag)
		g_source_remove_unix_fd(&l->source, l->tag);
	l->tag = NULL;
	if (redlock_fd(l->c) >= 0)
		l->tag = g_source_add_unix_fd(&l->source, redlock_fd(l->c),
					      (GIOCondition)((events & POLLIN ? G_IO_IN : 0) | (events & POLLOUT ? G_IO_OUT : 0) | G_IO_HUP | G_IO_ERR));
	g_source_set_ready_time(&l->source, due == INT64_MAX ? -1 : g_get_monotonic_time() + due - redlock_now_us());
}

static inline void redlock_glib_stop(struct redlock_glib *l)
{
	g_source_destroy(&l->source);
	g_source_unref(&l->source);
}

static inline gboolean redlock_glib_happened(GSource *source, GSourceFunc unused, gpointer data)
{
	struct redlock_glib *l = (struct redlock_glib *)(void *)source;
	int r = redlock_process(l->c);

	(void)unused;
	(void)data;
	if (!r)
		redlock_glib_update(l);
	l->ready(l->arg, r);
	return r ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

/* context: NULL means that of the main loop. */
static inline struct redlock_glib *redlock_glib_start(GMainContext *context, struct redlock *c, void (*ready)(void *arg, int r), void *arg)
{
	static GSourceFuncs functions = {NULL, NULL, redlock_glib_happened, NULL, NULL, NULL};
	struct redlock_glib *l = (struct redlock_glib *)(void *)g_source_new(&functions, sizeof(struct redlock_glib));

	l->c = c;
	l->ready = ready;
	l->arg = arg;
	l->tag = NULL;
	redlock_glib_update(l);
	g_source_attach(&l->source, context);
	return l;
}

#endif
