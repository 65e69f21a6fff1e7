/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/systemd/systemd.c, against a notify socket of our own. */
#include "daemon/systemd/systemd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
					"LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};

static struct systemd s;
static char folder[64];

static void setup(void)
{
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	snprintf(folder, sizeof(folder), "/tmp/systemd-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	s = (struct systemd){.fd = -1};
}

static void teardown(void)
{
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		ck_assert_msg(!getenv(variables[i]), "%s is still set", variables[i]);
	systemd_release(&s);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void set_pid(const char *variable, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	setenv(variable, text, 1);
}

/* The manager's end. name may begin with '@'. */
static int manager(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(a.sun_path, name, n);
	if (*name == '@')
		a.sun_path[0] = '\0';
	ck_assert(!bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)));
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static const char *heard(int fd)
{
	static char text[1024];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* --- notify -------------------------------------------------------------------------------------------------------- */

FIXTURE(.setup = setup, .teardown = teardown)

TEST(without_systemd_nothing_happens_and_all_succeeds)
{
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_int_eq(s.fd, -1);
	ck_assert_int_eq(s.watchdog_us, 0);
	ck_assert_uint_eq(s.sockets_n, 0);
	ck_assert_int_eq(systemd_notify(&s, "READY=1"), 0);
	ck_assert_int_eq(systemd_reloading(&s), 0);
	ck_assert_int_eq(systemd_status(&s, "%d", 1), 0);
	ck_assert_int_eq(systemd_watchdog(&s), 0);
	ck_assert_int_eq(systemd_notify(&s, "STOPPING=1"), 0);
}

LOOP_TEST(the_manager_hears_each_word_on_a_path_and_on_an_abstract_name, 2)
{
	char name[96];
	int64_t us;
	int fd;

	snprintf(name, sizeof(name), "%s%s/notify", _i ? "@" : "", folder);
	fd = manager(name);
	setenv("WATCHDOG_USEC", "2000000", 1);
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_int_eq(s.watchdog_us, 2000000);
	ck_assert_int_eq(systemd_notify(&s, "READY=1"), 0);
	ck_assert_str_eq(heard(fd), "READY=1");
	ck_assert_int_eq(systemd_status(&s, "%d/%d redis up\nREADY=0", 0, 3), 0);
	ck_assert_str_eq(heard(fd), "STATUS=0/3 redis up READY=0");
	ck_assert_int_eq(systemd_watchdog(&s), 0);
	ck_assert_str_eq(heard(fd), "WATCHDOG=1");
	ck_assert_int_eq(systemd_reloading(&s), 0);
	ck_assert_int_eq(sscanf(heard(fd), "RELOADING=1\nMONOTONIC_USEC=%" SCNd64, &us), 1);
	ck_assert(us <= clock_us() && us > clock_us() - 10000000);
	ck_assert_int_eq(systemd_notify(&s, "STOPPING=1"), 0);
	ck_assert_str_eq(heard(fd), "STOPPING=1");
	ck_assert_int_eq(fcntl(s.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	if (!_i)
		unlink(name);
}

TEST(a_status_that_is_too_long_is_cut)
{
	char name[96], much[2000];
	int fd;

	snprintf(name, sizeof(name), "@%s", folder);
	fd = manager(name);
	memset(much, 'x', sizeof(much));
	much[sizeof(much) - 1] = '\0';
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_int_eq(systemd_status(&s, "%s", much), 0);
	ck_assert_uint_eq(strlen(heard(fd)), 511);
	close(fd);
}

TEST(a_manager_that_is_behind_holds_nothing_up)
{
	char name[96];
	int fd, r = 0, i;
	int64_t start;

	snprintf(name, sizeof(name), "@%s", folder);
	fd = manager(name);
	setenv("WATCHDOG_USEC", "1000", 1);
	ck_assert_int_eq(systemd_init(&s), 0);
	for (i = 0; i < 100000 && !r; i++)
		r = systemd_watchdog(&s);
	ck_assert_int_eq(r, -EAGAIN);
	start = clock_us();
	ck_assert_int_eq(systemd_watchdog(&s), -EAGAIN);
	ck_assert_int_eq(systemd_status(&s, "x"), -EAGAIN);
	ck_assert_int_eq(systemd_notify(&s, "READY=1"), -EAGAIN);
	ck_assert_int_eq(systemd_reloading(&s), -EAGAIN);
	ck_assert_int_eq(systemd_notify(&s, "STOPPING=1"), -EAGAIN);
	ck_assert_int_lt(clock_us() - start, 900000);
	/* Once the manager reads again, it is told again. */
	heard(fd);
	ck_assert_int_eq(systemd_notify(&s, "READY=1"), 0);
	close(fd);
	ck_assert_int_eq(systemd_watchdog(&s), -ECONNREFUSED);
}

TEST(a_notify_address_that_is_none_is_refused)
{
	char longer[120];

	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	ck_assert_int_eq(systemd_init(&s), -EAFNOSUPPORT);
	setenv("NOTIFY_SOCKET", "@", 1);
	ck_assert_int_eq(systemd_init(&s), -EINVAL);
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[108] = '\0';
	setenv("NOTIFY_SOCKET", longer, 1);
	ck_assert_int_eq(systemd_init(&s), -EINVAL);
	ck_assert_int_eq(s.fd, -1);
}

/* --- watchdog ------------------------------------------------------------------------------------------------------ */

TEST(the_watchdog_of_another_process_is_not_ours)
{
	setenv("WATCHDOG_USEC", "2000000", 1);
	set_pid("WATCHDOG_PID", getpid() + 1);
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_int_eq(s.watchdog_us, 0);
	setenv("WATCHDOG_USEC", "2000000", 1);
	set_pid("WATCHDOG_PID", getpid());
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_int_eq(s.watchdog_us, 2000000);
}

TEST(a_watchdog_without_sense_is_refused)
{
	static const char *const wrong[] = {"", "0", "-1", "1s", " 1", "9223372036854775808", "99999999999999999999"};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("WATCHDOG_USEC", wrong[i], 1);
		ck_assert_msg(systemd_init(&s) == -EINVAL, "'%s'", wrong[i]);
		ck_assert_int_eq(s.watchdog_us, 0);
	}
	setenv("WATCHDOG_USEC", "1", 1);
	setenv("WATCHDOG_PID", "me", 1);
	ck_assert_int_eq(systemd_init(&s), -EINVAL);
}

/* --- passed sockets ------------------------------------------------------------------------------------------------ */

TEST(the_sockets_of_another_process_are_not_ours)
{
	setenv("LISTEN_FDS", "1", 1);
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_uint_eq(s.sockets_n, 0);
	setenv("LISTEN_FDS", "1", 1);
	set_pid("LISTEN_PID", getpid() + 1);
	ck_assert_int_eq(systemd_init(&s), 0);
	ck_assert_uint_eq(s.sockets_n, 0);
}

TEST(passed_sockets_without_sense_are_refused)
{
	set_pid("LISTEN_PID", getpid());
	setenv("LISTEN_FDS", "9", 1);
	ck_assert_int_eq(systemd_init(&s), -E2BIG);
	set_pid("LISTEN_PID", getpid());
	setenv("LISTEN_FDS", "two", 1);
	ck_assert_int_eq(systemd_init(&s), -EINVAL);
	set_pid("LISTEN_PID", getpid());
	setenv("LISTEN_FDS", "2", 1);
	setenv("LISTEN_FDNAMES", "one", 1);
	ck_assert_int_eq(systemd_init(&s), -EINVAL);
	setenv("LISTEN_FDS", "2", 1);
	setenv("LISTEN_PID", "-3", 1);
	ck_assert_int_eq(systemd_init(&s), -EINVAL);
	ck_assert_uint_eq(s.sockets_n, 0);
}

/* Descriptors 3 and 4 may be in use here; a child has no use for them. Its exit code says which step failed. */
static int child_takes(const char *count, const char *names)
{
	set_pid("LISTEN_PID", getpid());
	setenv("LISTEN_FDS", count, 1);
	if (names)
		setenv("LISTEN_FDNAMES", names, 1);
	dup2(0, 3);
	dup2(0, 4);
	close(5);
	return systemd_init(&s);
}

static int child_two_names(void)
{
	if (child_takes("2", "unix:tcp.socket") || s.sockets_n != 2)
		return 1;
	if (s.sockets[0].fd != 3 || s.sockets[1].fd != 4)
		return 2;
	if (strcmp(s.sockets[0].name, "unix") != 0 || strcmp(s.sockets[1].name, "tcp.socket") != 0)
		return 3;
	if (!(fcntl(3, F_GETFD) & FD_CLOEXEC) || !(fcntl(4, F_GETFD) & FD_CLOEXEC))
		return 4;
	return getenv("LISTEN_FDS") || getenv("LISTEN_PID") || getenv("LISTEN_FDNAMES") ? 5 : 0;
}

static int child_no_names(void)
{
	return child_takes("1", NULL) || s.sockets_n != 1 || strcmp(s.sockets[0].name, "unknown") != 0;
}

static int child_empty_names(void)
{
	return child_takes("2", ":") || s.sockets_n != 2 || *s.sockets[0].name || *s.sockets[1].name;
}

static int child_missing(void)
{
	return child_takes("3", NULL) != -EBADF || s.sockets_n != 0;
}

static int child_long_name(void)
{
	char name[300];

	memset(name, 'x', sizeof(name));
	name[256] = '\0';
	if (child_takes("1", name) != -EINVAL)
		return 1;
	name[255] = '\0';
	return child_takes("1", name) || strcmp(s.sockets[0].name, name) != 0;
}

/* Two wait at a passed socket when the configuration has a mistake. It is told by a stream that ends. */
static int child_turns_away(void)
{
	int listening = socket(AF_UNIX, SOCK_STREAM, 0), end[2];
	struct sockaddr_un here = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(here);
	char byte;

	if (bind(listening, (struct sockaddr *)&here, sizeof(here.sun_family)) || listen(listening, 2) ||
	    getsockname(listening, (struct sockaddr *)&here, &size))
		return 1;
	for (int i = 0; i < 2; i++) {
		end[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(end[i], (struct sockaddr *)&here, size))
			return 2;
	}
	listening = fcntl(listening, F_DUPFD, 10);
	end[0] = fcntl(end[0], F_DUPFD, 10);
	end[1] = fcntl(end[1], F_DUPFD, 10);
	dup2(listening, 3);
	set_pid("LISTEN_PID", getpid());
	setenv("LISTEN_FDS", "1", 1);
	systemd_turn_away();
	return read(end[0], &byte, 1) || read(end[1], &byte, 1) || getenv("LISTEN_FDS") ? 3 : 0;
}

LOOP_TEST(passed_sockets_are_taken_with_their_names, 6)
{
	static int (*const child[])(void) = {child_two_names, child_no_names, child_empty_names, child_missing, child_long_name, child_turns_away};
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(child[_i]());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
