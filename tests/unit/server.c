/* SPDX-License-Identifier: BSD-2-Clause */
/* See server.h. Readiness is the server's own word on its standard output; it dies with the test, at the latest. */
#include "tests/unit/server.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS    20000
#define OPTIONS_MAX 32

static int port_free(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, n), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &n), 0);
	close(fd);
	return ntohs(in.sin_port);
}

void server_make(struct server *s, bool with_port)
{
	*s = (struct server){0};
	strcpy(s->dir, "/tmp/server.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(s->dir));
	(void)snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	s->port = with_port ? port_free() : 0;
}

static void server_exec(const struct server *s, const char *const *option, int out, pid_t parent)
{
	char port[16];
	const char *argv[OPTIONS_MAX + 16] = {
		"redis-server", "--port", port, "--bind",    "127.0.0.1", "--unixsocket", s->path, "--dir",
		s->dir,         "--save", "",   "--logfile", "",          "--daemonize",  "no"};
	size_t n = 15, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	dup2(out, STDOUT_FILENO);
	(void)snprintf(port, sizeof(port), "%d", s->port);
	for (i = 0; option && option[i] && i < OPTIONS_MAX; i++)
		argv[n++] = option[i];
	execvp("redis-server", (char *const *)(uintptr_t)argv);
	_exit(127);
}

static bool log_await(const struct server *s, const char *word)
{
	struct pollfd p = {.fd = s->log, .events = POLLIN};
	char said[65536];
	size_t n = 0;
	ssize_t r;

	while (n < sizeof(said) - 1 && poll(&p, 1, START_MS) > 0 && (r = read(s->log, said + n, sizeof(said) - 1 - n)) > 0) {
		n += (size_t)r;
		said[n] = 0;
		if (strstr(said, word))
			return true;
	}
	return false;
}

static void server_launch(struct server *s, const char *const *option)
{
	pid_t self = getpid();
	int out[2];

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid == 0)
		server_exec(s, option, out[1], self);
	close(out[1]);
	s->log = out[0];
}

redisContext *server_connect(const struct server *s)
{
	redisContext *c = redisConnectUnix(s->path);

	ck_assert_msg(c && !c->err, "%s: %s", s->path, c ? c->errstr : "no memory");
	return c;
}

void server_begin(struct server *s, const char *const *option)
{
	server_launch(s, option);
	ck_assert_msg(log_await(s, "Server initialized"), "redis-server did not start");
}

void server_start(struct server *s, const char *const *option)
{
	server_launch(s, option);
	ck_assert_msg(log_await(s, "eady to accept connections"), "redis-server did not come up");
	s->admin = server_connect(s);
}

void server_kill(struct server *s)
{
	if (s->admin)
		redisFree(s->admin);
	s->admin = NULL;
	if (s->pid <= 0)
		return;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	s->pid = 0;
	close(s->log);
}

static void folder_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char name[600];

	while (d && (e = readdir(d))) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && unlink(name) < 0)
			folder_remove(name);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void server_remove(struct server *s)
{
	server_kill(s);
	folder_remove(s->dir);
}

static const char *reply_text(const struct server *s, const char *what, redisReply *reply)
{
	static char text[8192];

	ck_assert_msg(reply != NULL, "%s: %s", what, s->admin->errstr);
	ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s: %s", what, reply->str);
	(void)snprintf(text, sizeof(text), "%s", reply->str ? reply->str : "");
	freeReplyObject(reply);
	return text;
}

const char *server_tell(struct server *s, const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = redisvCommand(s->admin, format, args);
	va_end(args);
	return reply_text(s, format, reply);
}

const char *server_tell_line(struct server *s, const char *line)
{
	char *copy = strdup(line), *save = NULL, *word;
	const char *argv[32], *text;
	int argc = 0;

	for (word = strtok_r(copy, " ", &save); word && argc < 32; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	text = reply_text(s, line, redisCommandArgv(s->admin, argc, argv, NULL));
	free(copy);
	return text;
}
