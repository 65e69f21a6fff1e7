/* SPDX-License-Identifier: BSD-2-Clause */
/* See fdstore.h. The manager handles messages on one socket in order, so a removal comes before what is put after it. */
#include "daemon/systemd/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Sends one datagram, with a descriptor; -1: none. */
static int message_send(const struct systemd *s, const char *message, int fd, int flags)
{
	struct sockaddr_un address = s->address;
	char text[SYSTEMD_NAME_SIZE + 64];
	struct iovec bytes = {text, strlen(message)};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.space = {0}};
	struct msghdr m = {.msg_name = &address, .msg_namelen = s->address_size, .msg_iov = &bytes, .msg_iovlen = 1};

	memcpy(text, message, bytes.iov_len);
	if (fd >= 0) {
		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	while (sendmsg(s->fd, &m, flags | MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int fdstore_put(const struct systemd *s, const char *name, int fd)
{
	const struct timeval patience = {.tv_sec = 1};
	char message[SYSTEMD_NAME_SIZE + 64];

	/* Without FDPOLL=0 the manager drops descriptors that it can read from, or whose peer has closed. */
	snprintf(message, sizeof(message), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	if (setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return -errno;
	return message_send(s, message, fd, 0);
}

int fdstore_remove(const struct systemd *s, const char *name)
{
	char message[SYSTEMD_NAME_SIZE + 64];

	snprintf(message, sizeof(message), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	return message_send(s, message, -1, MSG_DONTWAIT);
}

/* The manager closes its copy of the pipe once it reaches this message: sd_notify_barrier(3). */
int fdstore_settle(const struct systemd *s, int64_t us)
{
	struct pollfd end = {.events = 0};
	int pipes[2], r;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	r = message_send(s, "BARRIER=1", pipes[1], 0);
	close(pipes[1]);
	end.fd = pipes[0];
	if (!r && poll(&end, 1, (int)(us / 1000)) <= 0)
		r = -ETIMEDOUT;
	close(pipes[0]);
	return r;
}
