/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold: a lock for a shell script. Without --pid redlock holds it until standard input ends. With --pid a process in the background holds it until
 * that process has ended, and redlock itself ends when the lock is granted. In both cases it prints the fence at the grant. A script that dies frees
 * the lock: the kernel closes its pipe, or reports the end of the process.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/lease.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/process.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- --release --- */

/*
 * hold --release finds the process that holds a lock for a script by a socket in the abstract namespace. Its name consists of the user, the process
 * of the script and the lock. Both ends check that the peer is the same user, or root.
 */

static socklen_t address_make(pid_t pid, const char *name, struct sockaddr_un *out)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	int n;

	/* FNV-1a, because a name may be longer than an address. A user who chooses two names with one hash confuses only their own script. */
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "redlock-hold/%u/%d/%016" PRIx64, (unsigned)geteuid(), (int)pid, hash);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool peer_is_ours(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && (peer.uid == geteuid() || peer.uid == 0);
}

/* Returns a listening descriptor, or a negative errno. */
static int release_socket_listen(pid_t pid, const char *name)
{
	struct sockaddr_un address;
	socklen_t n = address_make(pid, name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&address, n) && !listen(fd, 4))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Asks the holder to unlock, and waits until it has done so. Returns the exit code, or a negative errno: there is no such holder. */
static int release_socket_ask(pid_t pid, const char *name)
{
	struct sockaddr_un address;
	socklen_t n = address_make(pid, name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), code = 0, r = -ESRCH;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, n) && peer_is_ours(fd) && recv(fd, &code, sizeof(code), 0) == sizeof(code))
		r = code;
	close(fd);
	return r;
}

/* --- while it holds the lock --- */

#define KILLED (INT64_MAX / 2)

struct script {
	struct lease lease;
	struct invocation in; /* argv is the name of the script, used for the label */
	struct keeper_task task;
	struct redlock_grant grant;
	char word[64], *words[2], command[256];
	int process;     /* a descriptor of process.h; -1: the lock is held until the end of the input */
	int signals;     /* a descriptor for the signals that ask redlock to end */
	int listening;   /* from release_socket_listen, or negative */
	int asker;       /* the connection of the hold --release that asks, or -1 */
	int64_t kill_at; /* when the process is killed; 0: the lock is held; KILLED: the process was killed */
	bool done;
	int code;
};

static void script_end(struct script *s, int code)
{
	s->done = true;
	s->lease.deaf = true;
	s->code = code;
}

static void script_lost(struct lease *l, int64_t kill_by, const char *name, const char *why)
{
	struct script *s = (struct script *)l;
	char still[STILL_BYTES];

	l->deaf = true;
	s->code = EXIT_LOST;
	if (stderr_is_ready())
		complain("%s was lost (%s%s)%s", name, why, validity_still(&l->validity, still),
			 s->process >= 0 ? "; the process that it was held for is stopped" : "");
	if (s->process < 0) {
		s->done = true;
		return;
	}
	s->kill_at = MAX(kill_by, 1);
	process_signal(s->process, SIGTERM);
	process_signal(s->process, SIGCONT); /* a stopped process acts on SIGTERM when it continues */
}

/* What a script writes to redlock is ignored. Only the end counts. */
static bool input_is_over(void)
{
	char bytes[4096];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void script_accept_asker(struct script *s)
{
	s->asker = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
	if (s->asker < 0)
		return;
	if (peer_is_ours(s->asker)) {
		script_end(s, s->kill_at ? EXIT_LOST : EXIT_SUCCESS);
		return;
	}
	close(s->asker);
	s->asker = -1;
}

static void script_sleep(struct script *s)
{
	struct pollfd fds[] = {
		{.fd = s->process >= 0 ? s->process : STDIN_FILENO, .events = POLLIN},
		{.fd = s->signals, .events = POLLIN},
		{.fd = s->listening, .events = POLLIN},
	};
	struct signalfd_siginfo info;

	if (!lease_sleep(&s->lease, s->kill_at ? s->kill_at : lease_due_us(&s->lease, s->lease.validity.term_at), fds, 3))
		return;
	if (fds[0].revents && (s->process >= 0 || input_is_over()))
		script_end(s, s->kill_at ? EXIT_LOST : EXIT_SUCCESS);
	if (fds[1].revents && read(s->signals, &info, sizeof(info)) == sizeof(info))
		script_end(s, 128 + (int)info.ssi_signo);
	if (fds[2].revents && !s->done)
		script_accept_asker(s);
	lease_process(&s->lease);
}

static void script_unlock(struct script *s)
{
	bool keeps = s->in.keep_ms > 0;
	int r = lease_finish_check(&s->lease);
	unsigned at;

	if (!r)
		r = locks_held_unlock(&s->task, s->in.keep_ms, ATTEMPT_DONE, &at);
	/* The end of the session frees the lock in any case. But a name that had to be kept is then free. */
	if (!r || s->code == EXIT_LOST || (r < 0 && !keeps))
		return;
	if (r == REDLOCK_REFUSED && loss_refused(s->task.c))
		s->code = EXIT_LOST;
	else if (r == REDLOCK_REFUSED && keeps && !s->code)
		s->code = EXIT_FAILED;
	if (stderr_is_ready())
		complain("unlocking %s: %s", s->lease.name, redlock_errmsg(s->task.c));
}

/* Holds the lock of task->grant, and unlocks it at the end. Returns the exit code of redlock. */
static int script_hold(struct script *s)
{
	s->lease = (struct lease){.task = &s->task, .lost = script_lost};
	if (lease_begin(&s->lease)) {
		complain("cannot start: out of descriptors");
		script_end(s, EXIT_FAILED);
	}
	lease_process(&s->lease);
	while (!s->done) {
		int64_t now = redlock_now_us();

		validity_awake(&s->lease.validity, now);
		if (!s->lease.deaf)
			lease_decide(&s->lease, now);
		if (s->kill_at && now >= s->kill_at) {
			process_signal(s->process, SIGKILL);
			s->kill_at = KILLED;
		}
		if (!s->done)
			script_sleep(s);
	}
	script_unlock(s); /* also after a loss: a daemon that did not answer may still hold the lock */
	s->task.grant = s->lease.validity.grant;
	/*
	 * A process in the background stays until the daemon is back, and so does hold --release: the lock is free when that returns. A signal ends
	 * the process at once; then the lock stays until the grace is over.
	 */
	if (s->process >= 0 && s->code <= EXIT_LOST && late_quit_must(&s->task) && !redlock_process(s->task.c))
		late_quit(&s->task, s->asker);
	else
		redlock_close(s->task.c);
	if (s->listening >= 0)
		close(s->listening); /* after the answer, the script may hold the lock again */
	if (s->asker >= 0)
		(void)!send(s->asker, &s->code, sizeof(s->code), MSG_NOSIGNAL | MSG_DONTWAIT);
	return s->code;
}

/* --- the lock --- */

/* Takes the lock for the script of that pid. 0, or the exit code. front hangs up when nobody waits for the lock any more. */
static int script_take(struct script *s, const struct invocation *in, pid_t pid, int process, int front)
{
	static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	int signals = signals_take(ending, sizeof(ending) / sizeof(ending[0]), false);
	struct waiting w = {.in = &s->in, .front = front, .signals = signals, .exit = EXIT_FAILED};
	struct pollfd ends[] = {{.fd = front}, {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo info;
	unsigned name;
	int64_t ttl_ms;

	signal(SIGPIPE, SIG_IGN); /* if the reader of our output ends first, redlock must still free the lock */
	*s = (struct script){.in = *in, .process = process, .signals = signals, .listening = -1, .asker = -1};
	s->task = (struct keeper_task){.in = &s->in, .names = s->in.names, .names_n = 1, .grants = &s->grant, .front = front};
	process_name(pid, s->word, sizeof(s->word));
	s->words[0] = s->word;
	s->in.argv = s->words;
	process_command(pid, s->command, sizeof(s->command));
	if (!s->in.note && s->command[0])
		s->in.note = s->command;
	w.c = s->task.c = dial_waiting(&s->in, ends);
	w.abandoned = ends[0].revents || ends[1].revents;
	if (w.c && waiting_greet(&w) && waiting_take(&w, &ttl_ms, &name))
		return lease_confirm(&s->task, &w, ttl_ms, EXIT_LOST);
	/* A signal may have ended the wait. */
	return w.abandoned && read(signals, &info, sizeof(info)) == sizeof(info) ? 128 + (int)info.ssi_signo : w.exit;
}

static int fence_print(int64_t fence)
{
	printf("%" PRId64 "\n", fence);
	return output_end(0) ? EXIT_FAILED : 0;
}

/* --- until the input ends --- */

/* A shell starts background commands with this input. It would end at once, and the lock with it. */
static bool input_is_null(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) || (S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 && minor(st.st_rdev) == 3);
}

static int hold_for_input(const struct invocation *in)
{
	struct script s;
	int r;

	if (input_is_null()) {
		complain("standard input is closed or /dev/null, so nothing would end the lock: give --pid $$, or a pipe as input");
		return EXIT_FAILED;
	}
	r = script_take(&s, in, getppid(), -1, STDIN_FILENO);
	if (!r)
		r = fence_print(s.task.grant.fence);
	if (!r)
		return script_hold(&s);
	redlock_close(s.task.c);
	return r;
}

/* --- until a process ends --- */

/* Closes everything that this process inherited, except standard error, where it reports a loss. report: a descriptor of this program. */
static void descriptors_leave(const struct script *s, int report)
{
	struct stat out, err;
	/* As in $(redlock hold ... 2>&1): the shell waits for the end of that pipe, so it would never continue. */
	bool one_pipe = !fstat(STDOUT_FILENO, &out) && !fstat(STDERR_FILENO, &err) && S_ISFIFO(err.st_mode) && out.st_dev == err.st_dev &&
	                out.st_ino == err.st_ino;
	int saved = one_pipe ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int kept[] = {s->process, s->signals, s->listening, redlock_fd(s->task.c), report, saved};

	descriptors_drop(kept, sizeof(kept) / sizeof(kept[0]));
	if (saved >= 0)
		dup2(saved, STDERR_FILENO);
}

/* Runs in the background. report: receives the fence at the grant; it hangs up when redlock has ended. */
static _Noreturn void background(const struct invocation *in, int process, int report)
{
	struct script s;
	int r = script_take(&s, in, (pid_t)in->pid, process, report);

	if (!r) {
		s.listening = release_socket_listen((pid_t)in->pid, in->operand); /* if this fails, the end of the process still frees the lock */
		setsid();
		descriptors_leave(&s, report); /* before the script continues, which may try to lock a file that was open here */
		if (write(report, &s.task.grant.fence, sizeof(s.task.grant.fence)) < 0)
			r = EXIT_FAILED; /* nobody waits for the lock any more */
		close(report);
	}
	if (!r)
		_exit(script_hold(&s));
	redlock_close(s.task.c);
	_exit(r);
}

/* Waits for the fence, for the end of the background process, or for that of the script. */
static int background_await(const struct invocation *in, pid_t child, int process, int report)
{
	struct pollfd fds[] = {{.fd = report, .events = POLLIN}, {.fd = process, .events = POLLIN}};
	int64_t fence;
	int status, r;

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[0].revents && read(report, &fence, sizeof(fence)) == sizeof(fence)) {
		r = fence_print(fence);
		if (r) /* the script sees a failure, so it must hold nothing */
			(void)release_socket_ask((pid_t)in->pid, in->operand);
		return r;
	}
	if (!fds[0].revents) /* the script has ended: the background process gives up when this process ends */
		return EXIT_FAILED;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

static int hold_for_process(const struct invocation *in)
{
	pid_t pid = (pid_t)in->pid, child;
	int process = process_open(pid), ends[2], probe;
	char name[SHOWN_BYTES];

	if (process < 0) {
		complain(process == -EPERM ? "process %d is another user's, so redlock could not stop it when the lock is lost"
					   : "there is no process %d", (int)pid);
		return EXIT_FAILED;
	}
	/* Tests whether the address is in use. Connecting to it would ask the holder to unlock. */
	probe = release_socket_listen(pid, in->operand);
	if (probe == -EADDRINUSE) {
		complain("process %d holds %s already, and would wait for itself: redlock hold --release comes first", (int)pid, shown(in->operand, name));
		return EXIT_FAILED;
	}
	if (probe >= 0)
		close(probe);
	signal(SIGCHLD, SIG_DFL); /* if the parent ignores it, the exit code would be lost */
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

/* --- hold --release --- */

/* A shell may replace itself with redlock for the last command of a script. Then the lock is held for this very process. */
static int release(const struct invocation *in)
{
	pid_t pid = in->pid ? (pid_t)in->pid : getppid();
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
