/* SPDX-License-Identifier: BSD-2-Clause */
/* See offload.h. A thread works on its task, then writes the address of the task to a pipe, for the loop. */
#include "daemon/base/offload.h"

#include "daemon/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct offload {
	int pipe[2];
	unsigned tasks; /* begun, and not yet ended on the loop */
	pthread_mutex_t lock;
	unsigned threads; /* under the lock */
	bool closed;      /* under the lock; the loop no longer uses this: threads end their tasks themselves, and the last one frees it */
};

struct offload *offload_new(void)
{
	struct offload *o = mem_alloc(sizeof(*o));

	if (pipe2(o->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		abort(); /* no descriptor at start */
	pthread_mutex_init(&o->lock, NULL);
	return o;
}

static void offload_destroy(struct offload *o)
{
	close(o->pipe[0]);
	close(o->pipe[1]);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static void offload_put(const struct offload *o, struct task *t)
{
	if (write(o->pipe[1], &t, sizeof(t)) != sizeof(t))
		abort(); /* a pipe has room for 512 addresses at least */
}

static struct task *offload_take(const struct offload *o)
{
	struct task *t;

	return read(o->pipe[0], &t, sizeof(t)) == sizeof(t) ? t : NULL;
}

void offload_free(struct offload *o)
{
	struct task *t;
	bool last;

	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->closed = true;
	last = o->threads == 0;
	while ((t = offload_take(o)))
		t->end(t, false);
	pthread_mutex_unlock(&o->lock);
	if (last)
		offload_destroy(o);
}

int offload_fd(const struct offload *o)
{
	return o->pipe[0];
}

static void *task_main(void *context)
{
	struct task *t = context;
	struct offload *o = t->offload;
	bool closed, last;

	t->work(t);
	pthread_mutex_lock(&o->lock);
	closed = o->closed;
	last = --o->threads == 0 && closed;
	if (!closed)
		offload_put(o, t);
	pthread_mutex_unlock(&o->lock);
	if (closed)
		t->end(t, false);
	if (last)
		offload_destroy(o);
	return NULL;
}

/* Blocks all signals in the thread: the loop handles them. Returns 0 or an errno. */
static int thread_start(struct task *t)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, task_main, t);
	if (rc == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void offload_begin(struct offload *o, struct task *t)
{
	bool full = o->tasks++ >= OFFLOAD_TASKS;

	t->offload = o;
	if (t->work) {
		pthread_mutex_lock(&o->lock);
		t->error = full ? EAGAIN : thread_start(t);
		o->threads += t->error == 0;
		pthread_mutex_unlock(&o->lock);
	}
	if (!t->work || t->error)
		offload_put(o, t);
}

void offload_collect(struct offload *o)
{
	struct task *t;

	while ((t = offload_take(o))) {
		o->tasks--;
		t->end(t, !t->forgotten);
	}
}
