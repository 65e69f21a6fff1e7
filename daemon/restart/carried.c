/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The new process finds what the previous one has handed over. It closes and logs what it cannot use, and goes on as after a crash. It must never use a state
 * twice, nor one that another process has already used: see once.h.
 */
#include "daemon/main/internal.h"

#include "daemon/base/mem.h"
#include "daemon/restart/parcel.h"
#include "daemon/restart/records.h"

#include <errno.h>
#include <fcntl.h>
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

static void log_refusal(struct daemon *d, const char *why)
{
	d->names_elsewhere = true;
	log_event(LOG_WARN, "restart",
	          "error=\"the state of the process before cannot be used: %s\" note=\"its sessions end, and it goes on as after a crash\"", why);
}

void carried_refuse(struct daemon *d, const char *why)
{
	log_refusal(d, why);
	list_close(d, &d->carried->fds);
	carried_free(d->carried);
	d->carried = NULL;
}

int carried_take_fd(struct daemon *d, size_t place)
{
	return d->carried ? fdlist_take(&d->carried->fds, place) : -1;
}

/* --- in place: the environment says where -------------------------------------------------------------------------- */

/* A place whose descriptor is not in the list is empty. */
static void numbers_read(int from, struct fdlist *list)
{
	int some[1024];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, some, sizeof(some), at)) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(*some); i++)
			fdlist_add(list, some[i] > STDERR_FILENO ? some[i] : -1);
		at += n;
	}
	close(from);
}

static void list_close_on_exec(const struct fdlist *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->fd[i] >= 0)
			fcntl(list->fd[i], F_SETFD, FD_CLOEXEC);
}

/* The records of one process, and its descriptors, which move into d->carried. NULL, or what is wrong. */
static const char *records_take(struct daemon *d, int records, struct fdlist *list)
{
	const char *why;

	d->carried = records_read(records, &why);
	close(records);
	if (!d->carried)
		return why;
	d->carried->fds = *list;
	*list = (struct fdlist){0};
	return NULL;
}

static void find_in_place(struct daemon *d)
{
	const char *text = getenv(CARRIED_VARIABLE), *why;
	int pid = 0, records = -1, numbers = -1;
	struct fdlist list = {0};
	bool ours;

	/* NOLINTNEXTLINE(cert-err34-c): anything but a number is not the pid of this process */
	ours = text && sscanf(text, "%d:%d:%d", &pid, &records, &numbers) == 3 && pid == (int)getpid() && records > STDERR_FILENO && numbers > STDERR_FILENO;
	unsetenv(CARRIED_VARIABLE);
	if (!ours)
		return;
	numbers_read(numbers, &list);
	list_close_on_exec(&list);
	why = records_take(d, records, &list);
	if (!why)
		return;
	log_refusal(d, why);
	list_close(d, &list);
}

/* --- by the service manager ---------------------------------------------------------------------------------------- */

/* There is one of each, and perhaps remains of an earlier restart. */
static void find_by_manager(struct daemon *d)
{
	const char *why = "it is not there";
	uint64_t mark[2] = {0, 0};
	struct fdlist list = {0};

	for (size_t i = 0; i < d->systemd.kept_n; i++)
		if (strcmp(d->systemd.kept[i].name, CARRIED_PARCEL) == 0) {
			fdlist_close(&list); /* of an older parcel */
			if (parcel_unpack(d->systemd.kept[i].fd, &list, mark) < 0)
				why = "its connections are not there";
		}
	for (size_t i = 0; i < d->systemd.kept_n; i++) {
		const struct systemd_socket *kept = &d->systemd.kept[i];

		if (strcmp(kept->name, CARRIED_PARCEL) == 0)
			continue;
		if (strcmp(kept->name, CARRIED_RECORDS) != 0 || d->carried)
			close(kept->fd);
		else
			why = records_take(d, kept->fd, &list);
	}
	if (d->carried && memcmp(d->carried->mark, mark, sizeof(mark)) != 0) {
		carried_refuse(d, "its connections are not there");
		return;
	}
	if (d->carried)
		return;
	if (d->systemd.kept_n > 0)
		log_refusal(d, why);
	fdlist_close(&list);
}

int carried_start(struct daemon *d)
{
	find_in_place(d);
	if (!d->carried)
		find_by_manager(d);
	if (d->carried)
		d->started = d->carried->started;
	d->owes_removal = d->systemd.kept_n > 0;
	return 0;
}

int carried_resume(struct daemon *d)
{
	struct carried *c = d->carried;

	if (!c)
		return 0;
	d->audit.left_out = c->audit_left_out;
	d->audit.torn = c->audit_torn;
	d->restart.paused = c->paused;
	list_close(d, &c->fds);
	carried_free(c);
	d->carried = NULL;
	restart_resume(d);
	return 0;
}
