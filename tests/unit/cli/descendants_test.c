/* SPDX-License-Identifier: BSD-2-Clause */
/* client/cli/run/descendants.c: whom signals hit. */
#include "client/cli/run/descendants.h"

#include <check.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process group of somebody else: its leader answers each byte. */
static _Noreturn void stranger(int fd)
{
	char byte;

	setpgid(0, 0);
	while (write(fd, "x", 1) == 1 && read(fd, &byte, 1) == 1)
		;
	_exit(EXIT_SUCCESS);
}

/* A child of this process, and its child, the stranger. Tells the child, and the stranger as well. */
static pid_t child_begin(int fd, pid_t *ret_stranger)
{
	int ends[2];
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		pid_t pid = fork();

		if (pid == 0)
			stranger(fd);
		(void)!write(ends[1], &pid, sizeof(pid));
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ends[0], ret_stranger, sizeof(*ret_stranger)), sizeof(*ret_stranger));
	close(ends[0]);
	close(ends[1]);
	return child;
}

/* Its number is free when it was reaped and its group is empty, and another process may get it, and lead a group. */
TEST(a_group_that_has_got_the_number_of_a_command_that_ended_is_left_alone)
{
	struct descendants f = {.grouped = true, .ended = true};
	int ends[2];
	char byte;
	pid_t child;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child = child_begin(ends[1], &f.command);
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	descendants_kill(&f);
	descendants_end(&f);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	(void)!send(ends[0], "x", 1, MSG_NOSIGNAL);
	ck_assert_msg(read(ends[0], &byte, 1) == 1, "a process that has nothing to do with the command was killed");
	shutdown(ends[0], SHUT_WR);
	ck_assert_int_eq(read(ends[0], &byte, 1), 0); /* it has ended */
	close(ends[0]);
}

static bool is_reaped(struct descendants *f)
{
	for (unsigned i = 0; i < 5000 && !descendants_reap(f); i++)
		usleep(2000);
	return descendants_reap(f);
}

/* A member of the group is a child of this process, so nobody else can have its number. */
TEST(what_a_command_left_in_its_group_is_killed_with_the_group)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"trap '' TERM; sleep 1000 & exit 3"}, NULL};
	struct descendants_start how = {.argv = argv, .grouped = true};
	struct descendants f = {.command = 0};
	sigset_t mask;

	sigemptyset(&mask);
	how.mask = &mask;
	ck_assert_int_eq(descendants_start(&f, &how), 0);
	while (!f.ended)
		descendants_reap(&f);
	ck_assert_int_eq(descendants_code(&f), 3);
	ck_assert(!descendants_reap(&f));
	descendants_end(&f);
	descendants_kill(&f);
	ck_assert(is_reaped(&f));
}
