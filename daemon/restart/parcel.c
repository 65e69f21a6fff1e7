/* SPDX-License-Identifier: BSD-2-Clause */
/* See parcel.h. One datagram for each BATCH of descriptors. */
#include "daemon/restart/parcel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31656c6372617064) /* "dparcle1" */
#define BATCH 250 /* the system takes 253 */

struct label {
	uint64_t magic, mark[2];
	uint64_t total, from, n; /* this datagram has n of all `total`, beginning with this one */
};

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(BATCH * sizeof(int))];
};

static int batch_send(int socket, const struct label *label, const int *fd)
{
	union control control;
	struct label copy = *label;
	struct iovec bytes = {&copy, sizeof(copy)};
	struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (label->n > 0) {
		memset(&control, 0, sizeof(control));
		m.msg_control = control.space;
		m.msg_controllen = CMSG_SPACE(label->n * sizeof(int));
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(label->n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), fd, label->n * sizeof(int));
	}
	return sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int all_send(int socket, const struct fdlist *list, const uint64_t mark[2])
{
	struct label label = {.magic = MAGIC, .mark = {mark[0], mark[1]}, .total = list->n};
	int r;

	for (size_t i = 0; i < list->n; i++)
		if (list->fd[i] < 0)
			return -EBADF;
	do {
		label.n = list->n - label.from < BATCH ? list->n - label.from : BATCH;
		r = batch_send(socket, &label, list->fd + label.from);
		label.from += label.n;
	} while (!r && label.from < list->n);
	return r;
}

/* The queue must hold all of them: a datagram takes a KiB of it. */
int parcel_pack(const struct fdlist *list, const uint64_t mark[2])
{
	const int room = (int)(list->n / BATCH + 4) * 4096;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	r = all_send(pair[0], list, mark);
	close(pair[0]);
	if (!r)
		return pair[1];
	close(pair[1]);
	return r;
}

/* Appends the descriptors of one datagram. False: there is none, or it is damaged. */
static bool batch_receive(int socket, struct label *ret_label, struct fdlist *list)
{
	union control control;
	struct iovec bytes = {ret_label, sizeof(*ret_label)};
	struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
	ssize_t n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t got = 0;

	if (n < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (; CMSG_LEN((got + 1) * sizeof(int)) <= c->cmsg_len; got++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + got * sizeof(int), sizeof(fd));
			fdlist_add(list, fd);
		}
	}
	return n == (ssize_t)sizeof(*ret_label) && !(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) && ret_label->magic == MAGIC && ret_label->n == got;
}

int parcel_unpack(int socket, struct fdlist *list, uint64_t ret_mark[2])
{
	struct label first = {0}, label;
	const size_t before = list->n;
	bool whole = batch_receive(socket, &first, list) && first.from == 0;

	while (whole && list->n - before < first.total)
		whole = batch_receive(socket, &label, list) && label.total == first.total && label.from + label.n == list->n - before &&
			label.mark[0] == first.mark[0] && label.mark[1] == first.mark[1] && label.n > 0;
	close(socket);
	if (whole) {
		memcpy(ret_mark, first.mark, sizeof(first.mark));
		return 0;
	}
	while (list->n > before)
		close(list->fd[--list->n]);
	return -EBADMSG;
}
