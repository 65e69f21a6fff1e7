/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread for each verification, started and ended with it: there are few, and most of the time none. The thread owns its job until it has put the answer
 * there; an eventfd wakes the loop. A verifier that is freed meanwhile is freed by the thread.
 */
#include "daemon/verifier.h"

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

#include <crypt.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct verifier {
	pthread_mutex_t lock;
	bool running;  /* under the lock: a thread works on the job */
	bool ended;    /* under the lock: the loop is done with the verifier */
	uint64_t number;
	char *hash, *secret;
	size_t secret_n;
	bool known;    /* false: the hash is a decoy */
	bool ok;
	int fd;
	struct event *event;
	verifier_done *done;
	void *context;
};

static void job_wipe(struct verifier *v)
{
	if (v->secret)
		explicit_bzero(v->secret, v->secret_n);
	free(v->secret);
	free(v->hash);
	v->secret = v->hash = NULL;
}

static void verifier_destroy(struct verifier *v)
{
	job_wipe(v);
	close(v->fd);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static void verifier_wake(const struct verifier *v)
{
	uint64_t one = 1;

	if (write(v->fd, &one, sizeof(one)) < 0)
		abort(); /* an eventfd counts to 2^64 - 2 */
}

/* Looks at all bytes, wherever the first difference is. */
static bool text_same(const char *a, const char *b)
{
	size_t n = strlen(a);
	unsigned char differs = strlen(b) != n;

	for (size_t i = 0; !differs && i < n; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return !differs;
}

/* crypt(3) takes a text, so a secret with a NUL in it is wrong. */
static bool secret_fits(const char *secret, size_t n, const char *hash)
{
	struct crypt_data *data = calloc(1, sizeof(*data));
	const char *made;
	bool fits;

	if (!data)
		return false;
	made = strlen(secret) == n ? crypt_rn(secret, hash, data, (int)sizeof(*data)) : NULL;
	fits = made && text_same(made, hash);
	explicit_bzero(data, sizeof(*data));
	free(data);
	return fits;
}

static void *verifier_main(void *context)
{
	struct verifier *v = context;
	bool ok = secret_fits(v->secret, v->secret_n, v->hash) && v->known, ended;

	pthread_mutex_lock(&v->lock);
	v->ok = ok;
	v->running = false;
	ended = v->ended;
	if (!ended)
		verifier_wake(v);
	pthread_mutex_unlock(&v->lock);
	if (ended)
		verifier_destroy(v);
	return NULL;
}

static void verifier_answers(evutil_socket_t fd, short what, void *context)
{
	struct verifier *v = context;
	uint64_t number = v->number, times;
	bool ok;

	(void)what;
	if (read(fd, &times, sizeof(times)) < 0)
		return;
	pthread_mutex_lock(&v->lock); /* the thread has put its answer there */
	ok = v->ok;
	pthread_mutex_unlock(&v->lock);
	job_wipe(v);
	v->done(v->context, number, ok);
}

struct verifier *verifier_new(struct event_base *base, verifier_done *done, void *context)
{
	struct verifier *v = mem_alloc(sizeof(*v));

	v->done = done;
	v->context = context;
	v->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	v->event = v->fd < 0 ? NULL : event_new(base, v->fd, EV_READ | EV_PERSIST, verifier_answers, v);
	if (v->event && !event_add(v->event, NULL)) {
		pthread_mutex_init(&v->lock, NULL);
		return v;
	}
	if (v->event)
		event_free(v->event);
	if (v->fd >= 0)
		close(v->fd);
	free(v);
	return NULL;
}

void verifier_free(struct verifier *v)
{
	bool running;

	if (!v)
		return;
	event_free(v->event);
	pthread_mutex_lock(&v->lock);
	running = v->running;
	v->ended = true;
	pthread_mutex_unlock(&v->lock);
	if (!running)
		verifier_destroy(v);
}

/* Blocks all signals in the thread: the loop handles them. Returns 0 or an errno. */
static int verifier_start(struct verifier *v)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, verifier_main, v);
	if (rc == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void verifier_begin(struct verifier *v, uint64_t number, const char *hash, const char *decoy, char *secret, size_t n)
{
	const char *against = hash ? hash : decoy;
	int rc = 0;

	v->number = number;
	v->known = hash != NULL;
	v->ok = false;
	v->secret = mem_copy(secret, n);
	v->secret_n = n;
	explicit_bzero(secret, n);
	if (against) {
		v->hash = mem_copy(against, strlen(against));
		v->running = true;
		rc = verifier_start(v);
		if (rc == 0)
			return;
		log_event(LOG_ERROR, "auth", "error=\"%s\" note=\"a secret cannot be verified, so it counts as wrong\"", strerror(rc));
	}
	v->running = false;
	verifier_wake(v);
}

void verifier_accept(struct verifier *v, uint64_t number, char *secret, size_t n)
{
	explicit_bzero(secret, n);
	v->number = number;
	v->ok = true;
	verifier_wake(v);
}
