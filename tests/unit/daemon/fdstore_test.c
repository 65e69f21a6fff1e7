/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor store of daemon/systemd/systemd.c: against a notify socket of our own. */
#include "daemon/systemd/systemd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "FDSTORE",
                                        "REDLOCKD_FDSTORE"};
static struct systemd s;
static int manager;

static void setup(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[64];

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
	snprintf(name, sizeof(name), "@fdstore-test-%d", (int)getpid());
	memcpy(a.sun_path, name, strlen(name));
	a.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM, 0);
	ck_assert(!bind(manager, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))));
	setenv("NOTIFY_SOCKET", name, 1);
	setenv("REDLOCKD_FDSTORE", "yes", 1);
	ck_assert_int_eq(systemd_init(&s), 0);
}

static void teardown(void)
{
	systemd_release(&s);
	close(manager);
}

/* The next message, and the descriptor that came with it; -1: none. */
static const char *heard(int *ret_fd)
{
	static char text[1024];
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = {text, sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
	ssize_t n = recvmsg(manager, &m, 0);

	text[n > 0 ? n : 0] = '\0';
	*ret_fd = -1;
	if (CMSG_FIRSTHDR(&m))
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return text;
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(the_manager_is_given_a_descriptor_by_name)
{
	int pair[2], fd;
	struct stat a, b;

	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_int_eq(fdstore_put(&s, "redlockd-x", pair[0]), 0);
	ck_assert_str_eq(heard(&fd), "FDSTORE=1\nFDPOLL=0\nFDNAME=redlockd-x");
	ck_assert(!fstat(fd, &a) && !fstat(pair[0], &b) && a.st_ino == b.st_ino);
	ck_assert_int_eq(fdstore_remove(&s, "redlockd-x"), 0);
	ck_assert_str_eq(heard(&fd), "FDSTOREREMOVE=1\nFDNAME=redlockd-x");
	ck_assert_int_eq(fd, -1);
}

static void *reads_barrier(void *nothing)
{
	int fd;

	(void)nothing;
	ck_assert_str_eq(heard(&fd), "BARRIER=1");
	close(fd);
	return NULL;
}

TEST(settle_ends_once_the_manager_has_read_the_barrier)
{
	pthread_t thread;
	int fd;

	ck_assert_int_eq(pthread_create(&thread, NULL, reads_barrier, NULL), 0);
	ck_assert_int_eq(fdstore_barrier(&s, 10000000), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(fdstore_barrier(&s, 1000), -ETIMEDOUT);
	ck_assert_str_eq(heard(&fd), "BARRIER=1");
	close(fd);
}

TEST(a_manager_that_does_not_read_is_waited_for_a_second_at_most)
{
	int r = 0;

	for (int i = 0; i < 100000 && !r; i++)
		r = fdstore_remove(&s, "redlockd-x");
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_int_eq(fdstore_put(&s, "redlockd-x", manager), -EAGAIN);
}

TEST(whether_the_manager_keeps_descriptors_is_in_the_environment)
{
	static const struct {
		const char *fdstore, *unit;
		bool keeps;
	} row[] = {{NULL, NULL, false}, {"8", NULL, true}, {"0", NULL, false}, {"0", "yes", false}, {NULL, "yes", true}, {NULL, "", false}, {"x", NULL, false}};
	struct systemd other;

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		ck_assert_int_eq(systemd_environment(&s), 0);
		unsetenv("FDSTORE");
		unsetenv("REDLOCKD_FDSTORE");
		if (row[i].fdstore)
			setenv("FDSTORE", row[i].fdstore, 1);
		if (row[i].unit)
			setenv("REDLOCKD_FDSTORE", row[i].unit, 1);
		ck_assert_int_eq(systemd_init(&other), 0);
		ck_assert_msg(other.keeps == row[i].keeps, "row %zu", i);
		systemd_release(&other);
	}
	/* Without a manager there is nobody to keep anything. */
	setenv("REDLOCKD_FDSTORE", "yes", 1);
	ck_assert_int_eq(systemd_init(&other), 0);
	ck_assert(!other.keeps);
	systemd_release(&other);
}

/* A child has no use for the descriptors that it was started with. Its exit code says which step failed. */
static int child(void)
{
	char pid[16];
	struct systemd again;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "4", 1);
	setenv("LISTEN_FDNAMES", "a:tls:redlockd-records:redlockd-parcel", 1);
	for (int fd = 3; fd < 7; fd++)
		dup2(0, fd);
	if (systemd_init(&s) || s.sockets_n != 2 || s.kept_n != 2)
		return 1;
	if (s.kept[0].fd != 5 || s.kept[1].fd != 6 || strcmp(s.kept[0].name, "redlockd-records") != 0 || strcmp(s.kept[1].name, "redlockd-parcel") != 0)
		return 2;
	if (!(fcntl(5, F_GETFD) & FD_CLOEXEC))
		return 3;
	/* The next program in this process gets the sockets alone. */
	if (systemd_environment(&s) || systemd_init(&again))
		return 4;
	if (again.sockets_n != 2 || again.kept_n != 0 || again.sockets[1].fd != 4 || strcmp(again.sockets[1].name, "tls") != 0)
		return 5;
	s.sockets[0].fd = 9;
	return systemd_environment(&s) == -EBADF ? 0 : 6;
}

TEST(what_the_manager_kept_is_no_socket_to_listen_at)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(child());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

TEST(the_environment_is_as_it_was_for_the_next_program)
{
	struct systemd again;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	s.watchdog_us = 400000;
	ck_assert_int_eq(systemd_environment(&s), 0);
	ck_assert_str_eq(getenv("WATCHDOG_PID"), pid);
	ck_assert_ptr_null(getenv("LISTEN_FDS"));
	ck_assert_int_eq(systemd_init(&again), 0);
	ck_assert_int_eq(again.watchdog_us, 400000);
	ck_assert_uint_eq(again.address_size, s.address_size);
	ck_assert_mem_eq(again.address.sun_path, s.address.sun_path, s.address_size - offsetof(struct sockaddr_un, sun_path));
	systemd_release(&again);
}
