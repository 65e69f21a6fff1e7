/* SPDX-License-Identifier: BSD-2-Clause */
/* From the command line to the command. */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/lib/address.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- process 1 --- */

/*
 * redlock as process 1 of a container. The kernel drops every signal for process 1 that has no handler there, and process 1 must reap all orphans. So
 * process 1 only passes on signals and reaps. A child does the work of redlock.
 */
struct init {
	pid_t child;
	int signals; /* a descriptor of signalfd(2) */
	int status;  /* the status of the child, when it has ended */
	bool ended;
};

static void signals_pass(struct init *i)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(i->signals, &info, sizeof(info)) == sizeof(info)) {
		int signal = (int)info.ssi_signo;
		/*
		 * A signal of the terminal reaches the child as well, because it is in the same process group. But the terminal sends a hang-up to
		 * the leader of the session only.
		 */
		bool child_has_it = info.ssi_code == SI_KERNEL && signal != SIGHUP && signal != SIGCONT;

		if (signal != SIGCHLD && !i->ended && !child_has_it)
			kill(i->child, signal);
	}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != i->child)
			continue;
		i->ended = true;
		i->status = status;
	}
}

/* Returns in the child. Process 1 exits with the status of the child, after all keepers have ended. */
static void init_run(void)
{
	struct init i = {.ended = false};
	sigset_t all, before;
	int alive[2]; /* hangs up when the child and all keepers have ended. When process 1 ends, the kernel kills all other processes */

	sigfillset(&all);
	signal(SIGCHLD, SIG_DFL);
	i.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (i.signals < 0 || pipe2(alive, O_CLOEXEC))
		return;
	sigprocmask(SIG_BLOCK, &all, &before);
	i.child = fork();
	if (i.child > 0) {
		struct pollfd fds[] = {{.fd = i.signals, .events = POLLIN}, {.fd = alive[0]}};

		close(alive[1]);
		while (!i.ended || !fds[1].revents)
			if (poll(fds, i.ended ? 2 : 1, -1) > 0 && fds[0].revents)
				signals_pass(&i);
		_exit(WIFSIGNALED(i.status) ? 128 + WTERMSIG(i.status) : WEXITSTATUS(i.status));
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(i.signals);
	close(alive[0]);
}

/* --- the command --- */

static const struct {
	int (*run)(const struct invocation *in);
	int (*ask)(struct redlock *c, const struct invocation *in);
} functions[CLI_COMMANDS] = {
#define CLI_COMMAND(id, word, operands, least, most, wraps, function, help) [CLI_##id] = {.run = function},
#define CLI_REQUEST(id, word, operands, least, most, wraps, function, help) [CLI_##id] = {.ask = function},
#include "client/cli/cli.def"
};

static int command_run(const struct invocation *in)
{
	enum cli_command_id id = command_id(in);
	struct redlock *c;
	int r;

	if (functions[id].run)
		return functions[id].run(in);
	c = dial(in->addr);
	r = c ? functions[id].ask(c, in) : EX_UNAVAILABLE;
	redlock_close(c);
	return r;
}

/*
 * If a standard descriptor is closed, the connection must not get its number: complaints would go to the daemon. The file that takes the number can
 * be neither read nor written, like a closed one.
 */
static int descriptors_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Without TLS a command needs no OpenSSL. */
static bool is_secure(const char *addr)
{
	char standard[512], host[ADDRESS_HOST];

	if (!addr && redlock_address(standard, sizeof(standard)))
		return false;
	return address_is_tls(addr ? addr : standard, host);
}

int cli_main(int argc, char **argv)
{
	struct invocation in;
	char why[256];
	int r;

	if (descriptors_fill())
		return EXIT_FAILED;
	if (getpid() == 1)
		init_run();
	r = invocation_parse(argc, argv, &in);
	if (r)
		return r;
	if (in.version) {
		printf("redlock %s\n", REDLOCKD_VERSION);
		return output_end(EXIT_SUCCESS);
	}
	if (in.help) {
		usage_print(in.command);
		return output_end(EXIT_SUCCESS);
	}
	/* The library reads these two variables. They hold no secret, so CMD may inherit them. */
	if ((in.user && setenv("REDLOCK_USER", in.user, 1)) || (in.secret_file && setenv("REDLOCK_SECRET_FILE", in.secret_file, 1))) {
		complain("out of memory");
		return EXIT_FAILED;
	}
	if ((is_secure(in.addr) || (in.from && is_secure(in.from))) && redlock_use_tls(&in.tls, why, sizeof(why))) {
		complain("%s", why);
		return in.command->wraps ? EXIT_FAILED : EX_USAGE;
	}
	r = command_run(&in);
	return in.command->wraps || command_id(&in) == CLI_HOLD ? r : output_end(r);
}
