/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The new process finds what the one before it has handed over. What it cannot use it closes, says so, and goes on as after a crash. It must never use a state
 * twice, nor one that another process ran with: see once.h.
 */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/base/segment.h"
#include "daemon/layout.h"
#include "daemon/net/carry.h"
#include "daemon/restart/parcel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A descriptor that the manager has passed is not closed with the others. */
static bool is_passed(const struct daemon *d, int fd)
{
	for (size_t i = 0; i < d->systemd.sockets_n; i++)
		if (d->systemd.sockets[i].fd == fd)
			return true;
	return false;
}

static void list_close(const struct daemon *d, struct fdlist *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->fd[i] >= 0 && is_passed(d, list->fd[i]))
			list->fd[i] = -1;
	fdlist_close(list);
}

static void tell_refusal(struct daemon *d, const char *why, bool had_names)
{
	d->names_elsewhere = had_names;
	log_event(LOG_WARN, "restart",
	          "error=\"the state of the process before cannot be used: %s\" note=\"its sessions end, and it goes on as after a crash\"", why);
}

static void segment_begin(struct daemon *d)
{
	uint64_t random[2];

	rng_seed_from_system(random);
	d->segment = segment_new(layout_digest, random[0]);
	if (!d->segment)
		log_event(LOG_WARN, "restart", "error=\"%s\" note=\"there is no memory that outlives a process, so a restart ends all sessions\"",
		          strerror(errno));
}

void carried_refuse(struct daemon *d, const char *why)
{
	tell_refusal(d, why, d->carried->memory);
	list_close(d, &d->carried->fds);
	d->carried = NULL;
	if (d->backlog)
		kept_drop(d);
	segment_close(d->segment);
	segment_begin(d);
	kept_begin(d);
}

int carried_take_fd(struct daemon *d, size_t place)
{
	return d->carried ? fdlist_take(&d->carried->fds, place) : -1;
}

/* --- in place: the environment says where -------------------------------------------------------------------------- */

static void numbers_read(int from, struct fdlist *list)
{
	int some[1024];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, some, sizeof(some), at)) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(*some); i++)
			if (some[i] > STDERR_FILENO)
				fdlist_add(list, some[i]);
		at += n;
	}
	close(from);
}

static void list_close_on_exec(const struct fdlist *list)
{
	for (size_t i = 0; i < list->n; i++)
		fcntl(list->fd[i], F_SETFD, FD_CLOEXEC);
}

static void find_in_place(struct daemon *d)
{
	const char *text = getenv(CARRIED_VARIABLE), *why;
	int pid = 0, segment = -1, numbers = -1;
	struct fdlist list = {0};
	bool ours;

	/* NOLINTNEXTLINE(cert-err34-c): what is no number is no pid of this process */
	ours = text && sscanf(text, "%d:%d:%d", &pid, &segment, &numbers) == 3 && pid == (int)getpid() && segment > STDERR_FILENO && numbers > STDERR_FILENO;
	unsetenv(CARRIED_VARIABLE);
	if (!ours)
		return;
	numbers_read(numbers, &list);
	list_close_on_exec(&list);
	fcntl(segment, F_SETFD, FD_CLOEXEC);
	d->segment = segment_open(segment, layout_digest, &why);
	if (d->segment) {
		d->carried = segment_root(d->segment);
		fdlist_release(&list);
		return;
	}
	tell_refusal(d, why, true);
	close(segment);
	list_close(d, &list);
}

/* --- by the service manager ---------------------------------------------------------------------------------------- */

/* Puts the descriptors of the parcel into the places that they have in the list of the segment. */
static bool list_fill(struct carried *c, const struct fdlist *from, const uint64_t mark[2])
{
	if (!c || memcmp(c->mark, mark, sizeof(c->mark)) != 0 || c->fds.n != from->n)
		return false;
	memcpy(c->fds.fd, from->fd, from->n * sizeof(*from->fd));
	return true;
}

/* One segment that was passed, and the descriptors of one parcel. */
static const char *segment_try(struct daemon *d, int fd, const struct fdlist *list, const uint64_t mark[2])
{
	const char *why;
	struct segment *s = segment_open(fd, layout_digest, &why);

	if (!s) {
		close(fd);
		return why;
	}
	if (!list_fill(segment_root(s), list, mark)) {
		segment_close(s);
		return "its connections are not there";
	}
	d->segment = s;
	d->carried = segment_root(s);
	return NULL;
}

/* There is one of each, but for what an earlier restart may have left behind. */
static void find_by_manager(struct daemon *d)
{
	const char *why = "it is not there";
	uint64_t mark[2] = {0, 0};
	struct fdlist list = {0};

	for (size_t i = 0; i < d->systemd.kept_n; i++)
		if (strcmp(d->systemd.kept[i].name, CARRIED_PARCEL) == 0) {
			fdlist_close(&list); /* of an older one */
			if (parcel_unpack(d->systemd.kept[i].fd, &list, mark) < 0)
				why = "its connections are not there";
		}
	for (size_t i = 0; i < d->systemd.kept_n; i++) {
		const struct systemd_socket *kept = &d->systemd.kept[i];

		if (strcmp(kept->name, CARRIED_PARCEL) == 0)
			continue;
		if (strcmp(kept->name, CARRIED_SEGMENT) != 0 || d->carried)
			close(kept->fd);
		else
			why = segment_try(d, kept->fd, &list, mark);
	}
	if (d->carried) {
		fdlist_release(&list);
		return;
	}
	if (d->systemd.kept_n > 0)
		tell_refusal(d, why, true);
	fdlist_close(&list);
}

int carried_start(struct daemon *d)
{
	find_in_place(d);
	if (!d->carried)
		find_by_manager(d);
	if (d->carried)
		d->started = d->carried->started;
	else
		segment_begin(d);
	d->owes_removal = d->systemd.kept_n > 0;
	return 0;
}

static bool has_same_keys(const struct daemon *d)
{
	char *keys = stores_keys(d);
	bool same = strcmp(keys, d->carried->keys) == 0;

	mem_free(keys);
	return same;
}

/* NULL, or why the service cannot go on. */
static const char *service_take(struct daemon *d)
{
	const char *why;
	int r;

	if (!has_same_keys(d))
		return "the configuration names other stores, or another redis.key_prefix or redis.database";
	d->core_conf.segment = d->segment;
	if (!service_adopt(d->carried->service, &d->core_conf, &why))
		return why;
	r = stores_go_on(d);
	if (r < 0)
		return strerror(-r);
	d->service = d->carried->service;
	kept_drop(d);
	d->backlog = d->carried->backlog;
	return NULL;
}

bool carried_service(struct daemon *d)
{
	const char *why = d->carried ? service_take(d) : NULL;

	if (why)
		carried_refuse(d, why);
	return d->carried;
}

static void verify_resume(struct daemon *d, struct carried_verify *v)
{
	struct effect effect = {.kind = EFFECT_VERIFY, .verify = {v->number, {v->user, v->user_n}, v->secret, v->secret_n}};

	if (v->user)
		guard_verify(d, &effect);
	mem_free(v->user);
	mem_free(v->secret);
}

int carried_resume(struct daemon *d)
{
	struct event event = {.kind = EVENT_RULES};
	struct carried *c = d->carried;
	int64_t paused_us;

	if (!c)
		return 0;
	d->audit.left_out = c->audit_left_out;
	d->audit.torn = c->audit_torn;
	restart_resume(d);
	verify_resume(d, &c->verify);
	list_close(d, &c->fds);
	paused_us = instant_diff(clock_boottime(), c->paused);
	mem_free(c->runtime_dir);
	mem_free(c->keys);
	mem_free(c->web);
	mem_free(c);
	segment_set_root(d->segment, NULL);
	d->carried = NULL;
	if (d->core_conf.rules) /* they may have changed, as the file was read again */
		pump_step(d, &event);
	log_event(LOG_NOTICE, "restarted", "sessions=%u bytes=%zu paused_ms=%" PRId64, net_sessions(d->net), segment_live(d->segment), paused_us / MSEC);
	return 0;
}

void carried_stop(struct daemon *d)
{
	if (d->segment && !(d->restart.phase == RESTART_OVER && d->restart.way == IN_PLACE))
		segment_close(d->segment);
}
