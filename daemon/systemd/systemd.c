/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notifications to the service manager, one datagram each; environment variables from it; sockets passed as descriptors from 3 on. It must never make the
 * daemon wait for the manager, and never trust a variable that is meant for another process.
 */
#include "daemon/systemd/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LISTEN_FDS_START 3
#define SYSTEMD_PASSED_MAX 64
#define MESSAGE_SIZE 512

/* Decimal digits only, no sign, no blanks. */
static int number_parse(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value;

	errno = 0;
	value = strtoull(text, NULL, 10);
	if (!*text || text[strspn(text, "0123456789")] || errno || value > max)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

/* 1: the variable names this process. 0: it is unset, or names another process. -EINVAL: it is no number. */
static int pid_is_ours(const char *variable)
{
	const char *text = getenv(variable);
	uint64_t pid;

	if (!text)
		return 0;
	if (number_parse(text, INT32_MAX, &pid) < 0)
		return -EINVAL;
	return pid == (uint64_t)getpid();
}

/* --- notify -------------------------------------------------------------------------------------------------------- */

static int notify_open(struct systemd *s)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n;

	if (!path || !*path)
		return 0;
	if (*path != '/' && *path != '@')
		return -EAFNOSUPPORT;
	n = strlen(path);
	if (n >= sizeof(s->address.sun_path) || n < 2)
		return -EINVAL;
	s->address.sun_family = AF_UNIX;
	memcpy(s->address.sun_path, path, n);
	if (*path == '@')
		s->address.sun_path[0] = '\0';
	/* The address length ends a name in the abstract namespace, so a trailing NUL would be part of the name. */
	s->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path == '/'));
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return s->fd < 0 ? -errno : 0;
}

/* Sends one datagram, with a descriptor; -1: none. */
static int message_send(const struct systemd *s, const char *message, int fd, int flags)
{
	struct sockaddr_un address = s->address;
	char text[MESSAGE_SIZE];
	struct iovec bytes = {text, strlen(message)};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.space = {0}};
	struct msghdr m = {.msg_name = &address, .msg_namelen = s->address_size, .msg_iov = &bytes, .msg_iovlen = 1};

	if (s->fd < 0)
		return 0;
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

int systemd_notify(const struct systemd *s, const char *message)
{
	return message_send(s, message, -1, MSG_DONTWAIT);
}

int systemd_reloading(const struct systemd *s)
{
	struct timespec now;
	char message[64];

	/* The manager compares this time with its own clock, to tell this reload from an earlier one. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	return systemd_notify(s, message);
}

int systemd_watchdog(const struct systemd *s)
{
	return s->watchdog_us ? systemd_notify(s, "WATCHDOG=1") : 0;
}

int systemd_status(const struct systemd *s, const char *format, ...)
{
	char message[MESSAGE_SIZE] = "STATUS=";
	const size_t start = strlen(message);
	va_list args;
	char *p;

	va_start(args, format);
	vsnprintf(message + start, sizeof(message) - start, format, args);
	va_end(args);
	/* A line feed would begin another assignment. */
	for (p = message + start; *p; p++)
		if (*p == '\n')
			*p = ' ';
	return systemd_notify(s, message);
}

static int watchdog_read(struct systemd *s)
{
	const char *text = getenv("WATCHDOG_USEC");
	uint64_t us;
	int ours;

	if (!text)
		return 0;
	ours = getenv("WATCHDOG_PID") ? pid_is_ours("WATCHDOG_PID") : 1;
	if (ours <= 0)
		return ours;
	if (number_parse(text, INT64_MAX, &us) < 0 || us == 0)
		return -EINVAL;
	s->watchdog_us = (int64_t)us;
	return 0;
}

/* --- the descriptor store: the manager handles messages in order, so a removal comes before what is put after it --- */

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
	return systemd_notify(s, message);
}

/* The manager closes its copy of the pipe once it reaches this message: sd_notify_barrier(3). */
int fdstore_barrier(const struct systemd *s, int64_t us)
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

/* --- passed sockets ------------------------------------------------------------------------------------------------ */

static int fd_close_on_exec(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

/* Takes the next name of "a:b:c" off *names. *names is NULL if no names were given. */
static int name_take(const char **names, char ret_name[SYSTEMD_NAME_SIZE])
{
	size_t n;

	if (!*names) {
		snprintf(ret_name, SYSTEMD_NAME_SIZE, "unknown");
		return 0;
	}
	n = strcspn(*names, ":");
	if (n >= SYSTEMD_NAME_SIZE)
		return -EINVAL;
	memcpy(ret_name, *names, n);
	ret_name[n] = '\0';
	*names += n + ((*names)[n] == ':');
	return 0;
}

static bool name_is_kept(const char *name)
{
	return strncmp(name, SYSTEMD_KEPT, strlen(SYSTEMD_KEPT)) == 0;
}

static size_t names_count(const char *names, size_t *ret_kept)
{
	size_t n = 1;

	*ret_kept = name_is_kept(names);
	while ((names = strchr(names, ':'))) {
		names++;
		n++;
		*ret_kept += name_is_kept(names);
	}
	return n;
}

/* A descriptor that this daemon gave to the manager is no socket to listen at. */
static int socket_take(struct systemd *s, int fd, const char **names)
{
	struct systemd_socket one = {.fd = fd};
	int r = fd_close_on_exec(fd);

	if (!r)
		r = name_take(names, one.name);
	if (r < 0)
		return r;
	if (name_is_kept(one.name)) {
		if (s->kept_n < SYSTEMD_KEPT_MAX)
			s->kept[s->kept_n++] = one;
		else
			close(fd);
		return 0;
	}
	s->sockets[s->sockets_n++] = one;
	return 0;
}

static int sockets_take(struct systemd *s, size_t n)
{
	const char *names = getenv("LISTEN_FDNAMES");
	size_t kept = 0;
	int r = 0;

	if (names && names_count(names, &kept) != n)
		return -EINVAL;
	if (n - kept > SYSTEMD_SOCKETS_MAX)
		return -E2BIG;
	for (size_t i = 0; !r && i < n; i++)
		r = socket_take(s, LISTEN_FDS_START + (int)i, &names);
	return r;
}

static int sockets_read(struct systemd *s)
{
	const char *text = getenv("LISTEN_FDS");
	int ours = pid_is_ours("LISTEN_PID");
	uint64_t n;

	if (ours <= 0 || !text)
		return ours < 0 ? ours : 0;
	if (number_parse(text, INT32_MAX, &n) < 0)
		return -EINVAL;
	if (n > SYSTEMD_PASSED_MAX)
		return -E2BIG;
	return n ? sockets_take(s, n) : 0;
}

/* Since systemd 254 $FDSTORE says how many descriptors the manager keeps. Before that, only the unit knows. */
static bool store_read(void)
{
	const char *text = getenv("FDSTORE");
	uint64_t most = 0;

	if (text && number_parse(text, INT32_MAX, &most) == 0)
		return most > 0;
	text = getenv("REDLOCKD_FDSTORE");
	return text && *text;
}

/* --- begin and end ------------------------------------------------------------------------------------------------- */

static void environment_forget(void)
{
	static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",  "WATCHDOG_PID",  "LISTEN_FDS",
					    "LISTEN_PID",    "LISTEN_FDNAMES", "LISTEN_PIDFDID"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

int systemd_init(struct systemd *ret_systemd)
{
	struct systemd s = {.fd = -1};
	int r = sockets_read(&s);

	if (!r)
		r = watchdog_read(&s);
	if (!r)
		r = notify_open(&s);
	s.keeps = s.fd >= 0 && store_read();
	environment_forget();
	if (r < 0)
		systemd_release(&s);
	else
		*ret_systemd = s;
	return r;
}

/* A bound: other clients may connect as fast as these are closed. */
#define TURNED_AWAY_MOST 8192

void systemd_turn_away(void)
{
	struct systemd s;
	int fd, n = 0;

	if (systemd_init(&s) < 0)
		return;
	for (size_t i = 0; i < s.sockets_n; i++) {
		if (fcntl(s.sockets[i].fd, F_SETFL, O_NONBLOCK) < 0)
			continue;
		while (n++ < TURNED_AWAY_MOST && (fd = accept4(s.sockets[i].fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
			close(fd);
	}
	systemd_release(&s);
}

static void number_set(const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	setenv(name, text, 1);
}

static void sockets_set(const struct systemd *s)
{
	char names[SYSTEMD_SOCKETS_MAX * SYSTEMD_NAME_SIZE] = "";
	size_t used = 0;

	for (size_t i = 0; i < s->sockets_n; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ":" : "", s->sockets[i].name);
	number_set("LISTEN_PID", getpid());
	number_set("LISTEN_FDS", (int64_t)s->sockets_n);
	setenv("LISTEN_FDNAMES", names, 1);
}

int systemd_environment(const struct systemd *s)
{
	char path[sizeof(s->address.sun_path) + 1];
	size_t n = s->address_size > 0 ? s->address_size - offsetof(struct sockaddr_un, sun_path) : 0;

	for (size_t i = 0; i < s->sockets_n; i++)
		if (s->sockets[i].fd != LISTEN_FDS_START + (int)i)
			return -EBADF;
	if (s->sockets_n > 0)
		sockets_set(s);
	if (s->watchdog_us > 0) {
		number_set("WATCHDOG_USEC", s->watchdog_us);
		number_set("WATCHDOG_PID", getpid());
	}
	if (s->fd < 0)
		return 0;
	memcpy(path, s->address.sun_path, n);
	path[n] = '\0';
	if (!path[0])
		path[0] = '@';
	setenv("NOTIFY_SOCKET", path, 1);
	return 0;
}

void systemd_release(struct systemd *s)
{
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct systemd){.fd = -1};
}
