/* SPDX-License-Identifier: BSD-2-Clause */
/* See verifier.h. */
#include "daemon/main/verifier.h"

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/offload.h"

#include <crypt.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

struct verifier {
	struct offload *offload;
	struct event *event;
	struct check *latest; /* the one that must answer; NULL: none */
	verifier_done *done;
	void *context;
};

struct check {
	struct task task;
	struct verifier *verifier;
	uint64_t number;
	char *hash, *secret; /* NULL: there is nothing to verify */
	size_t secret_n;
	bool known;          /* false: the hash is a decoy */
	bool ok;
};

/* crypt(3) takes a text, so a secret with a NUL in it is wrong. */
static bool secret_fits(const char *secret, size_t n, const char *hash)
{
	struct crypt_data *data = calloc(1, sizeof(*data));
	const char *made;
	bool fits;

	if (!data)
		return false;
	made = strlen(secret) == n ? crypt_rn(secret, hash, data, (int)sizeof(*data)) : NULL;
	fits = made && secret_is(hash, made);
	explicit_bzero(data, sizeof(*data));
	free(data);
	return fits;
}

static void check_work(struct task *t)
{
	struct check *c = (struct check *)t;

	c->ok = secret_fits(c->secret, c->secret_n, c->hash) && c->known;
}

static void check_end(struct task *t, bool wanted)
{
	struct check *c = (struct check *)t;

	if (wanted && t->error)
		log_event(LOG_ERROR, "auth", "error=\"%s\" note=\"a secret cannot be verified, so it counts as wrong\"", strerror(t->error));
	if (wanted) {
		c->verifier->latest = NULL;
		c->verifier->done(c->verifier->context, c->number, c->ok);
	}
	if (c->secret)
		explicit_bzero(c->secret, c->secret_n);
	free(c->secret);
	free(c->hash);
	free(c);
}

static void verifier_answers(evutil_socket_t fd, short what, void *context)
{
	struct verifier *v = context;

	(void)fd, (void)what;
	offload_collect(v->offload);
}

struct verifier *verifier_new(struct event_base *base, verifier_done *done, void *context)
{
	struct verifier *v = mem_alloc(sizeof(*v));

	v->done = done;
	v->context = context;
	v->offload = offload_new();
	v->event = event_new(base, offload_fd(v->offload), EV_READ | EV_PERSIST, verifier_answers, v);
	if (!v->event || event_add(v->event, NULL) < 0)
		mem_exhausted();
	return v;
}

void verifier_free(struct verifier *v)
{
	if (!v)
		return;
	event_free(v->event);
	offload_free(v->offload);
	free(v);
}

static void check_begin(struct verifier *v, struct check *c)
{
	if (v->latest)
		v->latest->task.forgotten = true;
	v->latest = c;
	c->verifier = v;
	c->task.end = check_end;
	offload_begin(v->offload, &c->task);
}

void verifier_begin(struct verifier *v, uint64_t number, const char *hash, const char *decoy, char *secret, size_t n)
{
	const char *against = hash ? hash : decoy;
	struct check *c = mem_alloc(sizeof(*c));

	c->number = number;
	c->known = hash != NULL;
	if (against) {
		c->task.work = check_work;
		c->hash = mem_text(against);
		c->secret = mem_copy(secret, n);
		c->secret_n = n;
	}
	explicit_bzero(secret, n);
	check_begin(v, c);
}

void verifier_accept(struct verifier *v, uint64_t number, char *secret, size_t n)
{
	struct check *c = mem_alloc(sizeof(*c));

	explicit_bzero(secret, n);
	c->number = number;
	c->ok = true;
	check_begin(v, c);
}
