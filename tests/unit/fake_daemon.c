/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See fake_daemon.h. The fake complains on stderr and ends with 1 where it heard something else than its script says.
 */
#include "tests/unit/fake_daemon.h"
#include "client/cli.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 10000

struct player {
	const struct fake_daemon *fake;
	int listener, fd;
	char line[16384]; /* the request that was read and not yet expected; "" when there is none */
};

const char *fake_daemon_path(const struct fake_daemon *f, const char *name)
{
	static char paths[4][128];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%.60s/%s", f->folder, name);
	return path;
}

static _Noreturn void player_fail(const struct player *p, const char *step, const char *what)
{
	fprintf(stderr, "fake daemon: at '%s': %s; last line '%s'\n", step, what, p->line);
	_exit(EXIT_FAILURE);
}

/* A line into p->line, 1; 0: the client has gone; nothing within limit_ms: -1. */
static int player_read(struct player *p, int limit_ms)
{
	struct pollfd fd = {.fd = p->fd, .events = POLLIN};
	size_t n = 0;

	if (p->line[0])
		return 1;
	while (poll(&fd, 1, limit_ms) == 1) {
		if (read(p->fd, p->line + n, 1) != 1) {
			p->line[0] = '\0';
			return 0;
		}
		if (p->line[n] == '\n') {
			p->line[n] = '\0';
			return 1;
		}
		n++;
	}
	p->line[0] = '\0';
	return -1;
}

static void player_say(struct player *p, const char *text, size_t n, size_t piece)
{
	size_t at;

	for (at = 0; at < n; at += piece)
		if (send(p->fd, text + at, piece < n - at ? piece : n - at, MSG_NOSIGNAL) < 0)
			return;
}

static void player_speak(struct player *p, const char *text, size_t piece)
{
	char line[16384];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	player_say(p, line, (size_t)n, piece);
}

static void player_expect(struct player *p, const char *step, const char *text)
{
	size_t n = strlen(text);

	if (player_read(p, PATIENCE_MS) != 1)
		player_fail(p, step, "no request came");
	if (n && text[n - 1] == '$' ? strlen(p->line) != n - 1 || strncmp(p->line, text, n - 1) : strncmp(p->line, text, n))
		player_fail(p, step, "another request came");
	p->line[0] = '\0';
}

static void player_checks(struct player *p, const char *text, int answers)
{
	while (answers-- && player_read(p, PATIENCE_MS) == 1 && !strncmp(p->line, "CHECK ", 6)) {
		p->line[0] = '\0';
		player_speak(p, text, 4096);
	}
}

static void player_gone(struct player *p, const char *step)
{
	p->line[0] = '\0';
	if (player_read(p, PATIENCE_MS) != 0)
		player_fail(p, step, "the client is still there");
}

static long file_number(const char *path)
{
	FILE *file = fopen(path, "r");
	long n = 0;

	if (file && fscanf(file, "%ld", &n) != 1)
		n = 0;
	if (file)
		fclose(file);
	return n;
}

/* A zombie is gone: it does nothing any more. */
static int process_lives(long pid)
{
	char path[64], state = 'X';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(file);
	return state != 'Z' && state != 'X';
}

static void player_dead(struct player *p, const char *step, const char *file)
{
	struct timespec pause = {0, 2000000};
	long pid = file_number(fake_daemon_path(p->fake, file));
	int turns = step[0] == '~' ? PATIENCE_MS / 2 : 0;

	while (pid && process_lives(pid) && turns--)
		nanosleep(&pause, NULL);
	if (!pid || process_lives(pid))
		player_fail(p, step, "the process lives, or never did");
}

static void player_accept(struct player *p, const char *step)
{
	struct pollfd fd = {.fd = p->listener, .events = POLLIN};

	if (p->fd >= 0)
		close(p->fd);
	p->line[0] = '\0';
	p->fd = poll(&fd, 1, PATIENCE_MS) == 1 ? accept(p->listener, NULL, NULL) : -1;
	if (p->fd < 0)
		player_fail(p, step, "nobody came");
}

static void player_part(struct player *p, const char *step, int n)
{
	char byte;

	while (n-- > 0)
		if (read(p->fd, &byte, 1) != 1)
			player_fail(p, step, "the request is shorter");
}

static void player_note(const struct player *p, const char *step, const char *name)
{
	FILE *file = fopen(fake_daemon_path(p->fake, name), "w");

	if (!file || fprintf(file, "1\n") < 0 || fclose(file))
		player_fail(p, step, "cannot write");
}

/* The name of a socket that nobody listens at stays, as after a crash. */
static int player_listen(const struct fake_daemon *f)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", f->addr);
	unlink(f->addr);
	if (listener >= 0 && !bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 8))
		return listener;
	close(listener);
	return -1;
}

static void player_leave(struct player *p, const char *step, int ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

	close(p->listener);
	close(p->fd);
	p->fd = -1;
	nanosleep(&pause, NULL);
	p->listener = player_listen(p->fake);
	if (p->listener < 0)
		player_fail(p, step, "cannot listen again");
}

static void player_step(struct player *p, const char *step)
{
	const char *text = strlen(step) > 2 ? step + 2 : "";

	if (step[0] == '>' && step[1] == '>')
		player_say(p, step + 3, strlen(step + 3), 4096);
	else if (step[0] == '<')
		player_expect(p, step, text);
	else if (step[0] == '>')
		player_speak(p, text, 4096);
	else if (step[0] == '.')
		player_speak(p, text, 1);
	else if (step[0] == '*')
		player_checks(p, text, -1);
	else if (step[0] == '%') {
		player_checks(p, text, atoi(getenv("FAKE_CHECKS")));
		while (player_read(p, PATIENCE_MS) == 1)
			p->line[0] = '\0';
	} else if (step[0] == '=')
		player_gone(p, step);
	else if (step[0] == '@' || step[0] == '~')
		player_dead(p, step, text);
	else if (step[0] == '!')
		kill((pid_t)fake_daemon_number(fake_daemon_path(p->fake, "pid")), atoi(text));
	else if (step[0] == '^')
		player_note(p, step, text);
	else if (step[0] == '#')
		player_part(p, step, atoi(text));
	else if (step[0] == '+')
		player_accept(p, step);
	else if (step[0] == '-')
		player_leave(p, step, atoi(text));
	else
		player_fail(p, step, "no such step");
}

static _Noreturn void player_main(const struct fake_daemon *f, int listener, const char *script)
{
	struct player p = {.fake = f, .listener = listener, .fd = -1};
	char *copy = strdup(script), *at = copy, *step;

	player_accept(&p, "+");
	while ((step = strsep(&at, "\n")))
		if (*step)
			player_step(&p, step);
	free(copy);
	_exit(EXIT_SUCCESS);
}

void fake_daemon_begin(struct fake_daemon *f, const char *script)
{
	int listener;

	snprintf(f->folder, sizeof(f->folder), "/tmp/redlock-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->folder));
	snprintf(f->addr, sizeof(f->addr), "%s/sock", f->folder);
	listener = player_listen(f);
	ck_assert_int_ge(listener, 0);
	f->pid = fork();
	ck_assert_int_ge(f->pid, 0);
	if (f->pid == 0)
		player_main(f, listener, script);
	close(listener);
}

static void folder_remove(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char file[400];

	while (folder && (entry = readdir(folder))) {
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		unlink(file);
	}
	if (folder)
		closedir(folder);
	rmdir(path);
}

void fake_daemon_end(struct fake_daemon *f)
{
	int status = -1;

	waitpid(f->pid, &status, 0);
	folder_remove(f->folder);
	ck_assert_msg(status == 0, "the fake daemon was not played to its end");
}

void fake_daemon_break(struct fake_daemon *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	folder_remove(f->folder);
}

/* --- redlock --- */

static void text_read(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
}

/* A pipe whose reader has gone. */
static void stderr_break(void)
{
	int ends[2];

	if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
		_exit(99);
	close(ends[0]);
	close(ends[1]);
}

/* In a process group of its own, as a shell starts it; $FOLDER is for the commands that it runs. */
static _Noreturn void redlock_main(const struct fake_daemon *f, const char *const *argv)
{
	char addr_option[] = "--addr", program[] = "redlock", addr[96], *words[20] = {program, addr_option, addr};
	int argc = 3;

	setpgid(0, 0);
	setenv("FOLDER", f->folder, 1);
	snprintf(addr, sizeof(addr), "%s", f->addr);
	while (*argv && argc < 19)
		words[argc++] = strdup(*argv++);
	if (!freopen(fake_daemon_path(f, "out"), "w", stdout) || !freopen(fake_daemon_path(f, "err"), "w", stderr) ||
	    !freopen("/dev/null", "r", stdin))
		_exit(99);
	setvbuf(stderr, NULL, _IONBF, 0);
	signal(SIGTERM, SIG_DFL); /* not as the test runner has them */
	signal(SIGINT, SIG_DFL);
	if (getenv("FAKE_IGNORES_CHLD"))
		signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	if (getenv("FAKE_BREAKS_STDERR"))
		stderr_break();
	if (getenv("FAKE_CLOSES_STDERR"))
		close(STDERR_FILENO);
	exit(cli_main(argc, words));
}

pid_t redlock_begin(const struct fake_daemon *f, const char *const *argv)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		redlock_main(f, argv);
	return pid;
}

void redlock_peek(const struct fake_daemon *f, struct outcome *ret_outcome)
{
	text_read(fake_daemon_path(f, "out"), ret_outcome->out, sizeof(ret_outcome->out));
	text_read(fake_daemon_path(f, "err"), ret_outcome->err, sizeof(ret_outcome->err));
}

void redlock_end(const struct fake_daemon *f, pid_t pid, struct outcome *ret_outcome)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ret_outcome->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	redlock_peek(f, ret_outcome);
}

void redlock_run(const struct fake_daemon *f, struct outcome *ret_outcome, const char *const *argv)
{
	redlock_end(f, redlock_begin(f, argv), ret_outcome);
}

void played(struct outcome *ret_outcome, const char *script, const char *const *argv)
{
	struct fake_daemon f;

	fake_daemon_begin(&f, script);
	redlock_run(&f, ret_outcome, argv);
	fake_daemon_end(&f);
}

long fake_daemon_number(const char *path)
{
	struct timespec pause = {0, 2000000};
	int turn;
	long n;

	for (turn = 0; turn < 5000; turn++) {
		n = file_number(path);
		if (n)
			return n;
		nanosleep(&pause, NULL);
	}
	return 0;
}
