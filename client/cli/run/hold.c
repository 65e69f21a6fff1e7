/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold: a lock for a shell script. Without --pid it is held until standard input ends. With --pid a process in the background holds it until that process has
 * ended, and redlock itself ends when the lock is granted. In both cases the fence is printed at the grant. A script that dies frees the lock: the kernel
 * closes its pipe, or tells that the process has ended.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/run/descriptors.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/process.h"
#include "client/cli/run/release_socket.h"
#include "client/cli/run/script_lock.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

struct script {
	struct invocation in; /* argv is the name of the script, for the label */
	struct keeper_task task;
	struct redlock_grant grant;
	char word[64], *words[2], command[256];
};

/* --- the lock --- */

/* The exit code where there is no lock. A signal may have ended the wait. */
static int untaken(const struct waiting *w)
{
	struct signalfd_siginfo info;

	return w->abandoned && read(w->signals, &info, sizeof(info)) == sizeof(info) ? 128 + (int)info.ssi_signo : w->exit;
}

/* 0, or the exit code. front hangs up when nobody waits for the lock any more. */
static int script_take(struct script *s, int front, int signals)
{
	struct waiting w = {.in = &s->in, .front = front, .signals = signals, .exit = EXIT_FAILED};
	struct pollfd ends[] = {{.fd = front}, {.fd = signals, .events = POLLIN}};
	unsigned name;
	int64_t ttl_ms;
	int r;

	w.c = s->task.c = dial_waiting(&s->in, ends);
	w.abandoned = ends[0].revents || ends[1].revents;
	if (!w.c)
		return untaken(&w);
	s->task.front = front;
	if (!waiting_greet(&w) || !waiting_take(&w, &ttl_ms, &name))
		return untaken(&w);
	if (ttl_ms > MAX(s->in.ttl_ms, GRACE_MS) && redlock_session_secret(w.c)[0] && !waiting_regreet(&w, ttl_ms))
		return w.exit;
	/* The validity counts from a CHECK, because the LOCK may have waited for long. */
	r = locks_held_check(&s->task);
	if (r) {
		complain("%s%s", redlock_errmsg(w.c), silence_hint(r));
		return EXIT_LOST;
	}
	s->task.grant.ttl_ms = s->task.grant.ttl_ms ? s->task.grant.ttl_ms : ttl_ms;
	return 0;
}

static void script_init(struct script *s, const struct invocation *in, pid_t pid)
{
	memset(s, 0, sizeof(*s));
	process_name(pid, s->word, sizeof(s->word));
	s->words[0] = s->word;
	s->in = *in;
	s->in.argv = s->words;
	process_command(pid, s->command, sizeof(s->command));
	if (!s->in.note && s->command[0])
		s->in.note = s->command;
	s->task.in = &s->in;
	s->task.names = s->in.names;
	s->task.names_n = 1;
	s->task.grants = &s->grant;
}

static int fence_print(int64_t fence)
{
	printf("%" PRId64 "\n", fence);
	return output_end(0) ? EXIT_FAILED : 0;
}

/* --- until the input ends --- */

/* A shell starts background commands with this input. It would end at once, and so would the lock. */
static bool input_is_null(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) || (S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 && minor(st.st_rdev) == 3);
}

static int hold_for_input(const struct invocation *in)
{
	struct script_lock_for whom = {.process = -1, .input = STDIN_FILENO, .listening = -1, .signals = script_lock_signals()};
	struct script s;
	int r;

	if (input_is_null()) {
		complain("standard input is closed or /dev/null, so nothing would end the lock: give --pid $$, or a pipe as input");
		return EXIT_FAILED;
	}
	script_init(&s, in, getppid());
	r = script_take(&s, STDIN_FILENO, whom.signals);
	if (!r)
		r = fence_print(s.task.grant.fence);
	if (!r)
		return script_lock_run(&s.task, &whom);
	redlock_close(s.task.c);
	return r;
}

/* --- until a process ends --- */

/* As in $(redlock hold ... 2>&1): the shell waits for the end of that pipe, and so would never go on. */
static bool output_is_one_pipe(void)
{
	struct stat out, err;

	return !fstat(STDOUT_FILENO, &out) && !fstat(STDERR_FILENO, &err) && S_ISFIFO(err.st_mode) && out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/* Of what this process inherited it keeps standard error alone: there it tells a loss. report: of this program. */
static void descriptors_leave(const struct script *s, const struct script_lock_for *whom, int report)
{
	int err = output_is_one_pipe() ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int kept[] = {whom->process, whom->signals, whom->listening, redlock_fd(s->task.c), report, err};

	descriptors_drop(kept, sizeof(kept) / sizeof(kept[0]));
	if (err >= 0)
		dup2(err, STDERR_FILENO);
}

/* Runs in the background. report: the fence goes there at the grant; it hangs up when redlock has gone. */
static _Noreturn void background(const struct invocation *in, int process, int report)
{
	struct script_lock_for whom = {.process = process, .listening = -1, .signals = script_lock_signals()};
	struct script s;
	int r;

	script_init(&s, in, in->pid);
	r = script_take(&s, report, whom.signals);
	if (r) {
		redlock_close(s.task.c);
		_exit(r);
	}
	whom.listening = release_socket_listen(in->pid, in->operand, in->shared); /* without it, the end of the process still frees the lock */
	setsid();
	descriptors_leave(&s, &whom, report); /* before the script goes on, which may look at a lock of a file */
	/* Nobody waits for the lock any more. */
	if (write(report, &s.task.grant.fence, sizeof(s.task.grant.fence)) < 0) {
		redlock_close(s.task.c);
		_exit(EXIT_FAILED);
	}
	close(report);
	_exit(script_lock_run(&s.task, &whom));
}

/* Waits for the fence, the end of the background, or that of the script. */
static int background_await(const struct invocation *in, pid_t child, int process, int report)
{
	struct pollfd fds[] = {{.fd = report, .events = POLLIN}, {.fd = process, .events = POLLIN}};
	int64_t fence;
	int status, r;

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[0].revents && read(report, &fence, sizeof(fence)) == sizeof(fence)) {
		r = fence_print(fence);
		if (r) /* the script takes this for a failure, and so holds nothing */
			(void)release_socket_ask(in->pid, in->operand);
		return r;
	}
	if (!fds[0].revents) /* the script has ended: the background gives up when this process has gone */
		return EXIT_FAILED;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

static int hold_for_process(const struct invocation *in)
{
	int process = process_open(in->pid), ends[2];
	char shown[200];
	pid_t child;

	if (process < 0) {
		complain(process == -EPERM ? "process %d is another user's, so redlock could not stop it when the lock is lost"
					   : "there is no process %d", (int)in->pid);
		return EXIT_FAILED;
	}
	if (release_socket_bars(in->pid, in->operand, in->shared)) {
		locks_held_shown(&in->operand, 1, shown, sizeof(shown));
		complain("process %d holds %s already%s, and would wait for itself: redlock hold --release comes first", (int)in->pid, shown,
			 in->shared ? " alone" : "");
		return EXIT_FAILED;
	}
	signal(SIGCHLD, SIG_DFL); /* some parents leave it ignored, which would lose the exit code */
	if (pipe(ends) || (child = fork()) < 0) {
		complain("cannot start: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (child == 0) {
		close(ends[0]);
		background(in, process, ends[1]);
	}
	close(ends[1]);
	return background_await(in, child, process, ends[0]);
}

/* --- letting go --- */

/* A shell may have become redlock, for the last command of a script: then the lock is held for this very process. */
static int release(const struct invocation *in)
{
	pid_t pid = in->pid ? in->pid : getppid();
	int r = release_socket_ask(pid, in->operand);

	if (r < 0 && !in->pid)
		r = release_socket_ask(getpid(), in->operand);
	if (r >= 0)
		return r;
	complain("nothing holds this lock for process %d", (int)pid);
	return EXIT_NO;
}

int hold_main(const struct invocation *in)
{
	if (in->release)
		return release(in);
	return in->pid ? hold_for_process(in) : hold_for_input(in);
}
