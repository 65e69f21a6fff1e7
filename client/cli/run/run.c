/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run and try: a keeper gets the lock and holds it for the command. This process passes on signals, and exits as the command did.
 * It does nothing that matters to the lock, so that it may be stopped. Until the lock is granted, signals end this process; the
 * keeper sees that and gives up its request.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/once.h"
#include "client/cli/run/process.h"
#include "client/lib/display.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNSTOPPABLE_US 1000000
#define TAKE_OVER_US   100000 /* from the end of the keeper: max_grace may be short */
#define SESSION_GONE   1
#define TRUSTED_US     1000000 /* a request of work that was served for so long has no mistake */

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

/* How a run ended. */
struct run_end {
	bool granted; /* the lock was granted */
	bool started; /* CMD was executed */
	bool lost;    /* the lock was lost, and nothing of CMD is left */
	int signal;   /* the last one that asked CMD to end while it ran; 0: none did */
};

struct front {
	const struct invocation *in;
	int keeper, signals; /* descriptors; signals is -1 while signals still end this process */
	bool grouped;
	struct run_end end;
	bool alone;             /* this process began without children: all that it has descend from CMD */
	pid_t process, command; /* the pids of the keeper and of CMD; 0: CMD does not run yet */
	sigset_t mask;          /* of signals, as this process found it */
	unsigned name;          /* with --any: which of the names is held */
	char session[64], secret[128];
};

static int signals_take(struct front *f)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return f->signals < 0 ? -errno : 0;
}

/* In a common process group the terminal has signalled the command, too; but of a hang-up it tells the leader of the session alone. */
static bool terminal_told_both(const struct front *f, const struct signalfd_siginfo *info)
{
	bool hangs_up = info->ssi_signo == SIGHUP || info->ssi_signo == SIGCONT;

	return !f->grouped && info->ssi_code == SI_KERNEL && !(hangs_up && getsid(0) == getpid());
}

static void signal_pass(struct front *f, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	bool ends = signal == SIGTERM || signal == SIGINT || signal == SIGQUIT, ignored = signal_is_ignored(signal);
	struct front_signal pass = {.number = signal, .had = terminal_told_both(f, info)};

	if (signal == SIGTSTP && info->ssi_code == SI_KERNEL && !signal_has_shell()) {
		if (!f->grouped)
			kill(0, SIGCONT); /* the terminal has stopped CMD */
		return;
	}
	/* Another SIGHUP may ask CMD to read its configuration again. */
	pass.ending = !ignored && (ends || (signal == SIGHUP && info->ssi_code == SI_KERNEL));
	if (pass.ending)
		f->end.signal = signal;
	(void)!send(f->keeper, &pass, sizeof(pass), MSG_NOSIGNAL | MSG_DONTWAIT);
	/* The shell sees the job stop. The keeper goes on, and so does the lock. */
	if (signal == SIGTSTP && !ignored)
		raise(SIGSTOP);
}

static void signals_pass(struct front *f)
{
	struct signalfd_siginfo info;

	while (read(f->signals, &info, sizeof(info)) == sizeof(info))
		signal_pass(f, &info);
}

/* --- the keeper is gone --- */

/* 0; SESSION_GONE; or a negative errno: the daemon cannot be asked now. */
static int session_take(const struct front *f, struct redlock **ret_c)
{
	char line[sizeof(f->session) + sizeof(f->secret) + 16];
	struct redlock *c;
	int r;

	if (!f->secret[0])
		return SESSION_GONE;
	r = redlock_open(f->in->addr, ANSWER_TIMEOUT_MS, &c);
	if (r)
		return r;
	snprintf(line, sizeof(line), "RESUME %s %s", f->session, f->secret);
	r = redlock_request(c, line, 0, NULL, NULL);
	if (!r) {
		*ret_c = c;
		return 0;
	}
	r = strcmp(redlock_code(c), "NOTFOUND") ? -EAGAIN : SESSION_GONE;
	redlock_close(c);
	return r;
}

/* Nobody else needs the grace of the session. c: a connection that has taken it over, or NULL. */
static void session_end(const struct front *f, struct redlock *c)
{
	if (c || !session_take(f, &c))
		(void)!redlock_request(c, "QUIT", 0, NULL, NULL);
	redlock_close(c);
}

static unsigned names_held(const struct front *f)
{
	return f->in->any ? 1 : f->in->names_n;
}

/* Takes the session over, or asks whether it still holds the lock. False: the lock is lost. */
static bool session_holds(const struct front *f, struct redlock **c)
{
	struct redlock_grant grant;
	int r = 0;

	if (!*c)
		return session_take(f, c) != SESSION_GONE;
	if (works(f->in))
		r = redlock_request(*c, "PING", 0, NULL, NULL);
	for (unsigned i = 0; !r && !works(f->in) && i < names_held(f); i++)
		r = redlock_check(*c, f->in->names[f->in->any ? f->name : i], &grant);
	if (r == REDLOCK_REFUSED && loss_refused(*c))
		return false;
	if (r < 0) {
		redlock_close(*c);
		*c = NULL;
	}
	return true;
}

static bool has_no_children(void)
{
	siginfo_t who;

	return waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* True: CMD has ended, and so has all that descends from it, where this process can tell those from other children. */
static bool command_killed(const struct front *f, struct descendants *descendants)
{
	if (f->alone) {
		descendants_kill(descendants);
		return descendants_reap(descendants);
	}
	kill(f->grouped ? -f->command : f->command, SIGKILL);
	return waitpid(f->command, NULL, WNOHANG) != 0;
}

/*
 * The kernel killed CMD together with the keeper, but not what descends from CMD. Each of those becomes a child of this process.
 * False: CMD was not stopped in this time.
 */
static bool command_end(const struct front *f, struct descendants *descendants, int64_t time_us)
{
	struct timespec pause = {0, 2000000};
	int64_t until = redlock_now_us() + time_us;

	while (redlock_now_us() < until) {
		if (command_killed(f, descendants))
			return true;
		nanosleep(&pause, NULL);
	}
	return command_killed(f, descendants);
}

/*
 * The session goes on here, so that nobody else gets the lock while CMD lives. Signals end this process again. c: a connection
 * that has taken the session over, or NULL.
 */
static void command_outlive(const struct front *f, struct descendants *descendants, struct redlock *c)
{
	struct timespec pause = {0, 200000000};
	char name[200]; /* for a person */

	locks_held_shown(f->in->names + (f->in->any ? f->name : 0), names_held(f), name, sizeof(name));
	if (stderr_is_ready())
		complain("the process that held the lock was killed, and the command could not be; redlock holds on to %s", name);
	sigprocmask(SIG_SETMASK, &f->mask, NULL);
	while (session_holds(f, &c)) {
		if (command_killed(f, descendants)) {
			session_end(f, c);
			return;
		}
		nanosleep(&pause, NULL);
	}
	complain("%s was lost, and the command could not be stopped", name);
	redlock_close(c);
}

/* The keeper may have been killed after it started CMD and before it said so. */
static bool command_may_run(const struct front *f)
{
	return f->command > 0 || (f->end.granted && f->alone);
}

static int keeper_lost(const struct front *f)
{
	struct descendants descendants = {.command = f->command, .grouped = f->grouped && f->command > 0};
	struct redlock *c = NULL;
	bool over;

	waitpid(f->process, NULL, 0);
	over = !command_may_run(f) || command_end(f, &descendants, TAKE_OVER_US);
	if (!over) {
		(void)!session_take(f, &c);
		over = command_end(f, &descendants, UNSTOPPABLE_US);
	}
	if (!over) {
		command_outlive(f, &descendants, c);
		return EXIT_LOST;
	}
	session_end(f, c);
	complain(f->end.granted ? "the process that held the lock was killed; so was the command"
			    : "the process that waited for the lock was killed");
	return f->end.granted ? EXIT_LOST : EXIT_FAILED;
}

static int granted(struct front *f)
{
	struct front_signal go = {.number = 0};
	int r = signals_take(f);

	f->end.granted = true;
	if (r)
		return r;
	return send(f->keeper, &go, sizeof(go), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int ended(struct front *f, const struct keeper_report *report)
{
	f->end.lost = report->lost;
	if (report->text[0])
		complain("%s", report->text);
	/* The keeper has nothing left to do; reap it. */
	if (!report->lingers)
		waitpid(f->process, NULL, 0);
	return report->code;
}

/* Returns -1, or the exit code. */
static int report_take(struct front *f, const struct keeper_report *report)
{
	int r = 0;

	if (report->kind == KEEPER_ENDED)
		return ended(f, report);
	if (report->kind == KEEPER_STARTED) {
		f->command = report->command;
		f->end.started = true;
	}
	f->name = report->name;
	memcpy(f->session, report->session, sizeof(f->session));
	memcpy(f->secret, report->secret, sizeof(f->secret));
	if (report->kind == KEEPER_GRANTED)
		r = granted(f);
	if (!r)
		return -1;
	complain("cannot start: %s", strerror(-r));
	return EXIT_FAILED;
}

static int front_wait(struct front *f)
{
	struct keeper_report report;
	ssize_t n;
	int r = -1;

	while (r < 0) {
		struct pollfd fds[] = {{.fd = f->keeper, .events = POLLIN}, {.fd = f->signals, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_FAILED;
		if (f->signals >= 0)
			signals_pass(f);
		n = recv(f->keeper, &report, sizeof(report), MSG_DONTWAIT);
		/* If the keeper left a signal unread, recv reports one reset before its last report. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
			continue;
		r = n == sizeof(report) ? report_take(f, &report) : keeper_lost(f);
	}
	return r;
}

static _Noreturn void keeper_begin(const struct front *f, struct keeper_task *task, int end, pid_t group)
{
	sigset_t all;

	/* The keeper blocks all signals: a service manager signals each process of a service, and redlock passes that on to CMD. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	close(f->keeper);
	setpgid(0, 0);
	prctl(PR_SET_NAME, "redlock-keeper");
	task->front = end;
	task->start.grouped = f->grouped;
	task->start.group = group;
	task->start.mask = &f->mask;
	keeper_main(task);
}

/* From the fork on the connection belongs to the keeper. */
static int front_run(struct front *f, struct keeper_task *task)
{
	pid_t group = getpgrp();
	int ends[2];

	sigprocmask(SIG_BLOCK, NULL, &f->mask);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		complain("cannot start: %s", strerror(errno));
		return EXIT_FAILED;
	}
	f->keeper = ends[0];
	f->process = fork();
	if (f->process == 0)
		keeper_begin(f, task, ends[1], group);
	close(ends[1]);
	if (f->process < 0) {
		complain("cannot start: %s", strerror(errno));
		return EXIT_FAILED;
	}
	redlock_close(task->c);
	task->c = NULL;
	return front_wait(f);
}

static void front_close(const struct front *f)
{
	if (f->keeper >= 0)
		close(f->keeper);
	if (f->signals >= 0)
		close(f->signals);
}

/*
 * The terminal that controls this session stops whoever asks it for something from outside of its foreground group. So CMD stays in the group of redlock,
 * which a shell puts into the foreground, even if standard input is a file or a pipe.
 */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* One run of CMD. c was just opened; this call closes it. Returns the exit code of run. Some signals stay blocked: those that CMD was to get. */
static int run_once(const struct invocation *in, struct redlock *c, struct run_end *ret_end)
{
	struct front f = {.in = in, .keeper = -1, .signals = -1, .grouped = !has_terminal(), .alone = has_no_children()};
	struct keeper_task task = {.in = in, .c = c, .start.argv = in->argv};
	int r = front_run(&f, &task);

	redlock_close(task.c);
	front_close(&f);
	*ret_end = f.end;
	return r;
}

int run_main(const struct invocation *in)
{
	struct invocation left = *in;
	struct redlock *c = dial_waiting(&left, NULL);
	struct run_end end;

	return c ? run_once(&left, c, &end) : EXIT_FAILED;
}

int once_main(const struct invocation *in)
{
	struct invocation now = *in;

	if (strlen(in->operand) > ONCE_NAME_MOST) {
		complain("the name is too long: at most %zu bytes", ONCE_NAME_MOST);
		return in->status ? EX_USAGE : EXIT_FAILED;
	}
	if (in->status)
		return once_status(in);
	now.wait_ms = 0;
	now.busy_exit = EXIT_SUCCESS;
	return run_main(&now);
}

/* --- lead and work --- */

/*
 * lead and work run CMD again and again: lead once for each term in which this host is the leader, work once for each job of a queue. Each run has a session
 * and a keeper of its own. So a term asks for the lock behind those that wait, and whatever becomes of CMD, of the keeper or of the connection, a job is done,
 * or is given back. A run begins only when nothing is left of the CMD of the one before. Between runs signals end this process.
 */

/* Whether another term may follow. led: there was a term before, so the request has no mistake; trouble passes. */
static bool campaigns_again(const struct run_end *end, int code, bool led)
{
	(void)code;
	return end->lost ? !end->signal : led && !end->granted;
}

/* A CMD that cannot be executed would fail for every job. One that was executed may end with these codes as well: a shell does. */
static bool works_on(const struct run_end *end, int code, bool begun)
{
	if (end->signal)
		return false;
	if (end->granted)
		return end->started || (code != EXIT_CANNOT_EXEC && code != EXIT_NOT_FOUND);
	return begun && code == EXIT_FAILED;
}

/* first: as dial_waiting has left it of in. */
static int run_repeatedly(const struct invocation *in, const struct invocation *first, struct redlock *c, struct run_end *ret_end,
			  bool (*again)(const struct run_end *end, int code, bool begun))
{
	bool begun = false;
	sigset_t mask;
	int code;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (;;) {
		int64_t from = redlock_now_us();

		code = run_once(first, c, ret_end);
		first = in;
		begun |= works(in) && (ret_end->granted || redlock_now_us() - from > TRUSTED_US);
		if (!again(ret_end, code, begun))
			return code;
		begun = true;
		sigprocmask(SIG_SETMASK, &mask, NULL);
		if (!ret_end->granted)
			redial_pause();
		c = redial(in->addr);
		/* Nobody else waits for a keeper that lingered, or for what CMD left in the background. */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

int lead_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	struct run_end end;
	int code;

	if (!c)
		return EXIT_FAILED;
	code = run_repeatedly(in, in, c, &end, campaigns_again);
	return end.lost ? 128 + end.signal : code;
}

int work_main(const struct invocation *in)
{
	struct invocation left = *in;
	struct redlock *c = dial_waiting(&left, NULL);
	struct run_end end;
	int code;

	if (!c)
		return EXIT_FAILED;
	code = run_repeatedly(in, &left, c, &end, works_on);
	return end.signal ? 128 + end.signal : code;
}
