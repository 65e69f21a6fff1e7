/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/address.c, conn.c: redlock_open: addresses, and what it says of a connection that does not open. */
#include "client/lib/redlock.h"
#include "tests/fixture/fake_daemon.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const addresses[] = {"", "unix:", "[::1:7420", "::1:7420", "localhost:99999", "localhost:0", "localhost:12x"};

LOOP_TEST(an_address_without_sense_is_refused, ARRAY_N(addresses))
{
	struct redlock *c = NULL;

	ck_assert_int_eq(redlock_open(addresses[_i], PATIENCE, &c), -EINVAL);
	ck_assert_ptr_null(c);
}

TEST(an_address_without_a_daemon_is_told_by_errno)
{
	static char path[300];
	struct redlock *c = NULL;

	memset(path, '/', sizeof(path) - 1);
	ck_assert_int_eq(redlock_open("/nonexistent/redlockd.sock", PATIENCE, &c), -ENOENT);
	ck_assert_int_eq(redlock_open("/nonexistent/redlockd.sock:1", PATIENCE, &c), -ENOENT);
	ck_assert_int_eq(redlock_open("127.0.0.1:1", PATIENCE, &c), -ECONNREFUSED);
	ck_assert_int_eq(redlock_open("[::ffff:127.0.0.1]:1", PATIENCE, &c), -ECONNREFUSED);
	ck_assert_int_eq(redlock_open("/dev/null", PATIENCE, &c), -ENOTSOCK);
	ck_assert_int_eq(redlock_open(path, PATIENCE, &c), -ENAMETOOLONG);
	ck_assert_int_eq(redlock_open("/tmp/x", 0, &c), -EINVAL);
	ck_assert_ptr_null(c);
}

/* Nobody listens at the default port, or a daemon does. */
TEST(a_host_alone_has_the_default_port)
{
	struct redlock *c = NULL;
	int r = redlock_open("127.0.0.1", PATIENCE, &c);

	if (!r)
		redlock_close(c);
	ck_assert_msg(r == 0 || r == -ECONNREFUSED || r == -EPROTO, "%s", redlock_errmsg(NULL));
	ck_assert_int_eq(redlock_open("no-such-host.invalid", PATIENCE, &c), -EHOSTUNREACH);
	ck_assert_str_eq(redlock_errmsg(NULL),
			 "cannot reach redlockd at no-such-host.invalid: No route to host; does the name resolve? The path of a socket has a '/'");
}

static const struct {
	const char *addr;
	int64_t timeout_ms;
	const char *says;
} unopened[] = {
	{"/nonexistent/s", PATIENCE, "cannot reach redlockd at /nonexistent/s: No such file or directory; is it running?"},
	{"127.0.0.1:1", PATIENCE, "cannot reach redlockd at 127.0.0.1:1: Connection refused; is it running?"},
	{"::1:7420", PATIENCE, "cannot reach redlockd at ::1:7420: an IPv6 address must be in brackets: [::1]:7420"},
	{"a/\033b", PATIENCE, "cannot reach redlockd at a/\\x1bb: No such file or directory; is it running?"},
	{"", PATIENCE, "cannot reach redlockd at '': an address is host:port, or the path of a Unix socket, with a '/'"},
	{"127.0.0.1:1", 0, "a timeout is more than 0 ms"},
};

LOOP_TEST(a_connection_that_does_not_open_says_why, ARRAY_N(unopened))
{
	struct redlock *c = NULL;

	ck_assert_int_lt(redlock_open(unopened[_i].addr, unopened[_i].timeout_ms, &c), 0);
	ck_assert_ptr_null(c);
	ck_assert_str_eq(redlock_errmsg(NULL), unopened[_i].says);
}

TEST(the_default_address_is_the_environments_else_what_exists)
{
	char out[256], small[4], runtime[64] = "/tmp/redlock-unit-XXXXXX", path[128];

	setenv("REDLOCK_ADDR", "host:1", 1);
	ck_assert_int_eq(redlock_address(out, sizeof(out)), 0);
	ck_assert_str_eq(out, "host:1");
	ck_assert_int_eq(redlock_address(small, sizeof(small)), -ENAMETOOLONG);
	unsetenv("REDLOCK_ADDR");
	ck_assert_ptr_nonnull(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	ck_assert_int_eq(redlock_address(out, sizeof(out)), 0);
	if (access("/run/redlockd/redlockd.sock", F_OK))
		ck_assert_str_eq(out, "127.0.0.1:7420");
	snprintf(path, sizeof(path), "%s/redlockd", runtime);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/redlockd.sock");
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(redlock_address(out, sizeof(out)), 0);
	if (access("/run/redlockd/redlockd.sock", F_OK))
		ck_assert_str_eq(out, path);
	unlink(path);
	rmdir(dirname(path));
	rmdir(runtime);
}

static void tick(int signal)
{
	(void)signal;
}

/* A handler every 20 ms, as of a program that shows its progress. */
static void ticks(int64_t us)
{
	const struct itimerval every = {{0, us}, {0, us}};
	struct sigaction action = {.sa_handler = tick};

	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* A daemon that is stopped: so many wait already that connect(2) waits, too. */
TEST(signals_do_not_prolong_connecting)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), waits = socket(AF_UNIX, SOCK_STREAM, 0);
	struct redlock *c = NULL;
	int64_t before;

	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/redlock-unit-%d", (int)getpid());
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	ck_assert_int_eq(connect(waits, (const struct sockaddr *)&at, sizeof(at)), 0);
	before = redlock_now_us();
	ticks(20000);
	ck_assert_int_eq(redlock_open(at.sun_path, 200, &c), -ETIMEDOUT);
	ticks(0);
	ck_assert_int_ge(redlock_now_us() - before, 200000);
	ck_assert_ptr_null(c);
	unlink(at.sun_path);
	close(waits);
	close(fd);
}

TEST(a_host_that_is_too_long_for_TLS_is_not_asked_without_TLS)
{
	char addr[600] = "tls://";
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof(at);
	struct redlock *c = NULL;

	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	memset(addr + 6, '0', 520);
	snprintf(addr + 526, sizeof(addr) - 526, "177.0.0.1:%d", ntohs(at.sin_port));
	ck_assert_int_eq(redlock_open(addr, PATIENCE, &c), -EPROTONOSUPPORT);
	ck_assert_ptr_null(c);
	close(fd);
}
