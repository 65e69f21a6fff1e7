/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, asks and stops a redis-server. Readiness is its own word on its standard output; it dies with the test, at the latest. */
#include "tests/unit/oracle.h"

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS  20000
#define WORDS_MAX 128

static void clock_create(struct oracle *o, const char *path, int64_t clock_us)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int64_t *shared;

	if (fd < 0 || ftruncate(fd, 16) < 0)
		err(1, "%s", path);
	shared = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	o->frozen_us = &shared[1];
	*o->frozen_us = clock_us;
}

/* It lies beside the running program. */
static void shim_preload(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *name;

	if (n < 0)
		err(1, "/proc/self/exe");
	path[n] = 0;
	name = strrchr(path, '/') + 1;
	strcpy(name, "clock_shim.so");
	if (access(path, R_OK) < 0)
		err(1, "%s", path);
	setenv("LD_PRELOAD", path, 1);
}

static void redis_exec(const struct oracle *o, const char *socket, int out, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	dup2(out, STDOUT_FILENO);
	shim_preload();
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket, "--dir", o->dir, "--save", "", "--logfile",
	       "", (char *)NULL);
	err(1, "redis-server");
}

static void ready_await(const struct oracle *o)
{
	struct pollfd p = {.fd = o->log, .events = POLLIN};
	char said[16384];
	size_t n = 0;
	ssize_t r;

	while (n < sizeof(said) - 1 && poll(&p, 1, START_MS) > 0 && (r = read(o->log, said + n, sizeof(said) - 1 - n)) > 0) {
		n += (size_t)r;
		said[n] = 0;
		if (strstr(said, "eady to accept connections"))
			return;
	}
	errx(1, "redis-server did not come up");
}

void oracle_start(struct oracle *o, int64_t clock_us)
{
	char clock[64], socket[64];
	int out[2];
	pid_t self = getpid();

	strcpy(o->dir, "/tmp/oracle.XXXXXX");
	if (!mkdtemp(o->dir) || pipe2(out, O_CLOEXEC) < 0)
		err(1, "%s", o->dir);
	snprintf(clock, sizeof(clock), "%s/clock", o->dir);
	snprintf(socket, sizeof(socket), "%s/sock", o->dir);
	clock_create(o, clock, clock_us);
	setenv("REDLOCK_TEST_CLOCK", clock, 1);
	o->pid = fork();
	if (o->pid < 0)
		err(1, "fork");
	if (o->pid == 0)
		redis_exec(o, socket, out[1], self);
	close(out[1]);
	o->log = out[0];
	ready_await(o);
	o->redis = redisConnectUnix(socket);
	if (!o->redis || o->redis->err)
		errx(1, "%s: %s", socket, o->redis ? o->redis->errstr : "no memory");
}

static void oracle_unlink(const struct oracle *o, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", o->dir, name);
	unlink(path);
}

void oracle_stop(struct oracle *o)
{
	redisFree(o->redis);
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
	close(o->log);
	munmap((void *)(uintptr_t)(o->frozen_us - 1), 16);
	oracle_unlink(o, "sock");
	oracle_unlink(o, "clock");
	rmdir(o->dir);
}

static redisReply *reply_check(struct oracle *o, redisReply *reply)
{
	if (!reply)
		errx(1, "redis-server: %s", o->redis->errstr);
	return reply;
}

redisReply *oracle_say(struct oracle *o, const struct span *word, size_t n)
{
	const char *p[WORDS_MAX];
	size_t length[WORDS_MAX], i;

	if (n > WORDS_MAX)
		errx(1, "%zu words", n);
	for (i = 0; i < n; i++) {
		p[i] = word[i].p;
		length[i] = word[i].n;
	}
	return reply_check(o, redisCommandArgv(o->redis, (int)n, p, length));
}

redisReply *oracle_tell(struct oracle *o, const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = redisvCommand(o->redis, format, args);
	va_end(args);
	return reply_check(o, reply);
}
