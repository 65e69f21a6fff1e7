/* SPDX-License-Identifier: BSD-2-Clause */
/* See init.h. */
#include "client/cli/init.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct init {
	pid_t child;
	int signals; /* a descriptor of signalfd(2) */
	int status;  /* of the child, when it has ended */
	bool ended;
};

static void children_reap(struct init *i)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != i->child)
			continue;
		i->ended = true;
		i->status = status;
	}
}

/* What a terminal sends goes to the child as well, which is in the same process group; but a hang-up goes to the leader of the session alone. */
static bool child_has_it(const struct signalfd_siginfo *info)
{
	return info->ssi_code == SI_KERNEL && info->ssi_signo != SIGHUP && info->ssi_signo != SIGCONT;
}

static void signals_pass(struct init *i)
{
	struct signalfd_siginfo info;

	while (read(i->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			children_reap(i);
		else if (!i->ended && !child_has_it(&info))
			kill(i->child, (int)info.ssi_signo);
	}
}

/* alive: has hung up when neither the child is left nor a keeper. The kernel kills all that is left when process 1 ends. */
static _Noreturn void init_wait(struct init *i, int alive)
{
	struct pollfd fds[] = {{.fd = i->signals, .events = POLLIN}, {.fd = alive}};

	while (!i->ended || !fds[1].revents) {
		if (poll(fds, i->ended ? 2 : 1, -1) > 0 && fds[0].revents)
			signals_pass(i);
	}
	_exit(WIFSIGNALED(i->status) ? 128 + WTERMSIG(i->status) : WEXITSTATUS(i->status));
}

void init_run(void)
{
	struct init i = {.ended = false};
	sigset_t all, before;
	int alive[2];

	sigfillset(&all);
	signal(SIGCHLD, SIG_DFL);
	i.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (i.signals < 0 || pipe2(alive, O_CLOEXEC))
		return;
	sigprocmask(SIG_BLOCK, &all, &before);
	i.child = fork();
	if (i.child > 0) {
		close(alive[1]);
		init_wait(&i, alive[0]);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(i.signals);
	close(alive[0]);
}
