/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The old process packs what it knows into the segment, and hands it over: in place, to the program that takes its place; or by the service manager, which
 * keeps two descriptors, the segment and a parcel. It must never leave anything behind that a process could take twice: see once.h.
 */
#include "daemon/main/internal.h"

#include "daemon/base/mem.h"
#include "daemon/base/segment.h"
#include "daemon/net/carry.h"
#include "daemon/redis/carry.h"
#include "daemon/restart/once.h"
#include "daemon/restart/parcel.h"
#include "daemon/systemd/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SETTLE_US (5 * SEC)

static char *copy(const char *text)
{
	return mem_copy(text, strlen(text));
}

static size_t place(struct carried *c, int fd)
{
	return fd >= 0 ? fdlist_add(&c->fds, fd) : NO_PLACE;
}

static void pack_verify(struct carried_verify *to, struct carried_verify *held)
{
	if (!held->user)
		return;
	*to = *held;
	to->user = mem_copy(held->user, held->user_n);
	to->secret = mem_copy(held->secret, held->secret_n);
	explicit_bzero(held->secret, held->secret_n);
}

static void pack_stores(struct daemon *d, struct carried *c)
{
	if (d->upstream) {
		c->upstream = upstream_pack(d->upstream, &c->fds);
		return;
	}
	memory_pack(d->memory);
	state_pack(&d->state, &c->state);
	c->memory = d->memory;
	d->memory = NULL;
	d->state_open = false;
}

static void pack_journal(struct daemon *d, struct carried *c)
{
	int fd;

	journal_pack(&d->journal, &c->journal, &fd);
	c->journal_fd = place(c, fd);
}

/* In place the directory stays locked. The service manager may keep the descriptors for longer: nobody else could start there meanwhile. */
static void pack_runtime(struct daemon *d, struct carried *c)
{
	c->runtime_dir = copy(d->runtime.dir);
	c->lock_fd = c->folder_fd = NO_PLACE;
	if (d->restart.way != IN_PLACE)
		return;
	c->lock_fd = place(c, d->runtime.lock);
	c->folder_fd = place(c, d->runtime.folder);
	d->runtime.lock = d->runtime.folder = -1;
}

static void pack(struct daemon *d, struct carried *c)
{
	c->started = d->started;
	c->paused = d->restart.paused;
	c->keys = stores_keys(d);
	c->audit_left_out = d->audit.left_out;
	c->audit_torn = d->audit.torn;
	c->web = copy(d->web_where ? d->web_where : "");
	pack_verify(&c->verify, &d->restart.held);
	c->net = net_pack(d->net, &c->fds);
	pack_stores(d, c);
	pack_journal(d, c);
	pack_runtime(d, c);
	c->web_fd = c->fds.n;
	c->web_fds = d->web ? web_pack(d->web, &c->fds) : 0;
	service_pack(d->service);
	c->service = d->service;
	c->backlog = d->backlog;
	d->service = NULL;
	d->backlog = NULL;
}

int carry_pack(struct daemon *d)
{
	struct segment *before;
	struct carried *c;
	uint64_t mark[2];
	int r = systemd_environment(&d->systemd);

	rng_seed_from_system(mark);
	if (!r)
		r = once_put(d->runtime.dir, mark);
	if (r < 0)
		return r;
	guard_give_up(d);
	pump_pass(d);
	effects_release(&d->effects); /* which may stand in the segment */
	before = mem_use(d->segment);
	c = mem_alloc(sizeof(*c));
	memcpy(c->mark, mark, sizeof(mark));
	pack(d, c);
	mem_use(before);
	effects_init(&d->effects);
	segment_set_root(d->segment, c);
	return 0;
}

int carry_store(struct daemon *d)
{
	const struct carried *c = segment_root(d->segment);
	int parcel = parcel_pack(&c->fds, c->mark), r;

	if (parcel < 0)
		return parcel;
	r = fdstore_remove(&d->systemd, CARRIED_SEGMENT);
	if (!r)
		r = fdstore_remove(&d->systemd, CARRIED_PARCEL);
	if (!r)
		r = fdstore_put(&d->systemd, CARRIED_SEGMENT, segment_fd(d->segment));
	if (!r)
		r = fdstore_put(&d->systemd, CARRIED_PARCEL, parcel);
	if (!r)
		r = fdstore_settle(&d->systemd, SETTLE_US);
	close(parcel);
	return r;
}

static int survives(int fd)
{
	return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
}

/* The numbers of all descriptors, for a program that cannot read the segment. Returns a memfd. */
static int numbers_write(const struct fdlist *list)
{
	int fd = memfd_create("redlockd-descriptors", MFD_CLOEXEC);
	size_t n = list->n * sizeof(*list->fd);

	if (fd < 0)
		return -errno;
	if (n == 0 || write(fd, list->fd, n) == (ssize_t)n)
		return fd;
	close(fd);
	return -EIO;
}

static int all_survive(const struct fdlist *list, int segment, int numbers)
{
	int r = survives(segment);

	if (!r)
		r = survives(numbers);
	for (size_t i = 0; !r && i < list->n; i++)
		r = survives(list->fd[i]);
	return r;
}

/*
 * If the program cannot be started, this one finds what was carried in its environment, as the other would have: so a failure after all was packed is a
 * restart as well.
 */
int carry_exec(const struct program *program, struct segment *s)
{
	struct carried *c = segment_root(s);
	int segment = fcntl(segment_fd(s), F_DUPFD_CLOEXEC, 3), numbers, r;
	char text[64];

	numbers = segment < 0 ? -errno : numbers_write(&c->fds);
	r = numbers < 0 ? numbers : all_survive(&c->fds, segment, numbers);
	if (r < 0)
		fdlist_close(&c->fds); /* the sessions end */
	segment_close(s);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "%d:%d:%d", (int)getpid(), segment, numbers);
	setenv(CARRIED_VARIABLE, text, 1);
	return program ? program_exec(program) : 0;
}
