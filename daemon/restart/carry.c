/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The old process writes its state as records, and hands these over with its descriptors: in place, to the program that replaces it; or through the service
 * manager, which keeps two descriptors, the records and a parcel. It must never leave anything that a process could use twice: see once.h.
 */
#include "daemon/main/internal.h"

#include "daemon/base/mem.h"
#include "daemon/files/frame.h"
#include "daemon/net/carry.h"
#include "daemon/restart/once.h"
#include "daemon/restart/parcel.h"
#include "daemon/restart/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BARRIER_US (5 * SEC)

/* In place the directory stays locked. The service manager may keep the descriptors for longer, and the lock would stop any other start there. */
static void pack_runtime(struct daemon *d, struct carried *c)
{
	c->runtime_dir = mem_text(d->runtime.dir);
	if (d->restart.way != IN_PLACE)
		return;
	c->lock_fd = fdlist_add(&c->fds, d->runtime.lock);
	c->folder_fd = fdlist_add(&c->fds, d->runtime.folder);
	d->runtime.lock = d->runtime.folder = -1;
}

static void pack(struct daemon *d, struct carried *c)
{
	c->started = d->started;
	c->paused = d->restart.paused;
	c->audit_left_out = d->audit.left_out;
	c->audit_torn = d->audit.torn;
	mem_free(c->web.where);
	mem_free(c->api.where);
	c->web.where = mem_text(d->web_where ? d->web_where : "");
	c->api.where = mem_text(d->api_where ? d->api_where : "");
	c->net = net_pack(d->net, &c->fds);
	pack_runtime(d, c);
	c->web.fd = c->fds.n;
	c->web.fds = d->web ? web_pack(d->web, &c->fds) : 0;
	c->api.fd = c->fds.n;
	c->api.fds = d->api ? web_pack(d->api, &c->fds) : 0;
}

int carry_begin(struct daemon *d, uint64_t ret_mark[2])
{
	int r = systemd_environment(&d->systemd);

	rng_seed_from_system(ret_mark);
	return r ? r : once_put(d->runtime.dir, ret_mark);
}

static void service_write(struct daemon *d, struct buf *to)
{
	struct effects records;

	effects_init(&records);
	service_hand_over(d->service, &records);
	for (size_t i = 0; i < records.count; i++)
		frame_append(to, records.item[i].journal.record);
	effects_release(&records);
}

int carry_pack(struct daemon *d, const uint64_t mark[2])
{
	struct carried *c = carried_new();
	struct buf service = {0};

	service_write(d, &service);
	memcpy(c->mark, mark, sizeof(c->mark));
	net_parcel_free(c->net);
	pack(d, c);
	d->restart.handed = c;
	d->restart.records = records_write(c, &service);
	explicit_bzero(buf_begin(&service), buf_length(&service)); /* it may contain secrets */
	buf_release(&service);
	return d->restart.records < 0 ? d->restart.records : 0;
}

int carry_store(struct daemon *d)
{
	const struct carried *c = d->restart.handed;
	int parcel = parcel_pack(&c->fds, c->mark), r;

	if (parcel < 0)
		return parcel;
	r = fdstore_remove(&d->systemd, CARRIED_RECORDS);
	if (!r)
		r = fdstore_remove(&d->systemd, CARRIED_PARCEL);
	if (!r)
		r = fdstore_put(&d->systemd, CARRIED_RECORDS, d->restart.records);
	if (!r)
		r = fdstore_put(&d->systemd, CARRIED_PARCEL, parcel);
	if (!r)
		r = fdstore_barrier(&d->systemd, BARRIER_US);
	close(parcel);
	return r;
}

static int survives(int fd)
{
	return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
}

/* The numbers of all descriptors, in the order of their places. Returns a memfd. */
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

static int all_survive(const struct fdlist *list, int records, int numbers)
{
	int r = survives(records);

	if (!r)
		r = survives(numbers);
	for (size_t i = 0; !r && i < list->n; i++)
		r = survives(list->fd[i]);
	return r;
}

/*
 * If the program cannot be started, this one begins anew, and finds the handed-over state in its environment as the other would have. So a failure at this late
 * point is a restart as well.
 */
int carry_exec(const struct program *program, struct carried *c, int records)
{
	int numbers = numbers_write(&c->fds), r;
	char text[64];

	r = numbers < 0 ? numbers : all_survive(&c->fds, records, numbers);
	if (r < 0)
		fdlist_close(&c->fds); /* the sessions end */
	carried_free(c);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "%d:%d:%d", (int)getpid(), records, numbers);
	setenv(CARRIED_VARIABLE, text, 1);
	return program ? program_exec(program) : 0;
}
