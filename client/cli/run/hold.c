/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold: a lock for a shell script. Without --pid it is held until standard input ends. With --pid a process in the background holds it until that process has
 * ended, and redlock itself ends when the lock is granted. In both cases the fence is printed at the grant. A script that dies frees the lock: the kernel
 * closes its pipe, or tells that the process has ended.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/run/background.h"
#include "client/cli/run/lease.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/process.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
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

#define UNLOCK_MS 1000

/* --- --release --- */

/*
 * How hold --release reaches the process that holds a lock for a script: by a socket in the abstract namespace, whose name is made of the user, the script's
 * process and the lock. Both ends check that the other one is of the same user, or of root.
 */

/* FNV-1a: names are longer than an address may be. Whoever chooses two names of one hash confuses only a script of his own. */
static uint64_t name_hash(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash;
}

static socklen_t address_make(pid_t pid, const char *name, struct sockaddr_un *out)
{
	int n;

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "redlock-hold/%u/%d/%016" PRIx64, (unsigned)geteuid(), (int)pid, name_hash(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool peer_is_ours(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && (peer.uid == geteuid() || peer.uid == 0);
}

/* A listening descriptor, or a negative errno. */
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

/* Whether such a process holds the lock for pid. It is not asked: that would be a request to let go. */
static bool release_socket_is_taken(pid_t pid, const char *name)
{
	int fd = release_socket_listen(pid, name);

	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

/* Takes a connection: a descriptor that release_socket_answer closes, or -1 if there is none, or it is of somebody else. */
static int release_socket_accept(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && peer_is_ours(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Tells the exit code to whoever asked. -1 is allowed. */
static void release_socket_answer(int fd, int code)
{
	if (fd < 0)
		return;
	(void)!send(fd, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* Asks the holder to let go, and waits until it has. The exit code, or a negative errno: there is no such holder. */
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

/* --- while it is held --- */

struct script_lock_for {
	int process;   /* a descriptor of process.h, or -1: hold until the end of the input */
	int input;     /* where process is -1 */
	int signals;   /* of script_lock_signals */
	int listening; /* of release_socket.h, or -1 */
};

struct script_lock {
	struct lease lease;
	struct keeper_task *task;
	struct script_lock_for whom;
	int asker;      /* whoever asked to let go, or -1 */
	int64_t kill_at;    /* when the process is killed; 0: the lock is held */
	bool done, killed;
	int code;
};

static void script_lock_end(struct script_lock *k, int code)
{
	k->done = true;
	k->code = code;
}

/* --- the loss --- */

static void script_lock_lost(struct lease *l, int64_t kill_by, const char *name, const char *why)
{
	struct script_lock *k = (struct script_lock *)l;
	bool process = k->whom.process >= 0;
	char still[STILL_BYTES];

	k->code = EXIT_LOST;
	if (stderr_is_ready())
		complain("%s was lost (%s%s)%s", name, why, validity_still(&l->validity, still),
			 process ? "; the process that it was held for is stopped" : "");
	if (!process) {
		k->done = true;
		return;
	}
	k->kill_at = MAX(kill_by, 1);
	process_signal(k->whom.process, SIGTERM);
	process_signal(k->whom.process, SIGCONT); /* a stopped process acts on SIGTERM when it goes on */
}

static bool script_lock_listens(const struct lease *l)
{
	const struct script_lock *k = (const struct script_lock *)l;

	return !k->done && !k->kill_at;
}

/* --- the loop --- */

static void script_lock_decide(struct script_lock *k, int64_t now)
{
	struct lease *l = &k->lease;

	if (script_lock_listens(l) && now >= l->validity.check_at && validity_may_ask(&l->validity, now) && !redlock_in_flight(k->task->c))
		lease_ask(l, now);
	if (script_lock_listens(l) && now >= l->validity.term_at)
		lease_over(l);
	if (k->kill_at && now >= k->kill_at && !k->killed) {
		process_signal(k->whom.process, SIGKILL);
		k->killed = true;
	}
}

static int64_t script_lock_deadline(const struct script_lock *k)
{
	if (k->kill_at)
		return k->killed ? INT64_MAX / 2 : k->kill_at;
	return lease_due_us(&k->lease, k->lease.validity.term_at);
}

static void script_lock_hear_signal(struct script_lock *k)
{
	struct signalfd_siginfo info;

	if (read(k->whom.signals, &info, sizeof(info)) == sizeof(info))
		script_lock_end(k, 128 + (int)info.ssi_signo);
}

/* What a script writes to redlock says nothing; only the end counts. */
static void script_lock_hear_input(struct script_lock *k)
{
	char bytes[4096];
	ssize_t n = read(k->whom.input, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		script_lock_end(k, EXIT_SUCCESS);
}

static void script_lock_hear_asker(struct script_lock *k)
{
	k->asker = release_socket_accept(k->whom.listening);
	if (k->asker >= 0)
		script_lock_end(k, k->kill_at ? EXIT_LOST : EXIT_SUCCESS);
}

static void script_lock_sleep(struct script_lock *k)
{
	bool process = k->whom.process >= 0;
	struct pollfd fds[] = {
		{.fd = process ? k->whom.process : k->whom.input, .events = POLLIN},
		{.fd = k->whom.signals, .events = POLLIN},
		{.fd = k->whom.listening, .events = POLLIN},
	};

	if (!lease_sleep(&k->lease, script_lock_deadline(k), fds, 3))
		return;
	if (fds[0].revents && process)
		script_lock_end(k, k->kill_at ? EXIT_LOST : EXIT_SUCCESS);
	else if (fds[0].revents)
		script_lock_hear_input(k);
	if (fds[1].revents)
		script_lock_hear_signal(k);
	if (fds[2].revents && !k->done)
		script_lock_hear_asker(k);
	lease_hear(&k->lease);
}

/* Waits first for the answer to a CHECK in flight. All waits are short: the end of the session frees the lock, too, see script_lock_leave. */
static void script_lock_unlock(struct script_lock *k)
{
	struct redlock *c = k->task->c;
	int r = redlock_in_flight(c) ? redlock_finish(c, UNLOCK_MS) : 0;
	unsigned at;

	redlock_set_timeout(c, UNLOCK_MS);
	if (r >= 0)
		r = locks_held_unlock(k->task, k->task->in->keep_ms, ATTEMPT_DONE, &at);
	/* Whatever else becomes of the lock, the end of the session frees it; but a name that was to be kept is free then. */
	if (!r || k->code == EXIT_LOST || (r < 0 && !k->task->in->keep_ms))
		return;
	if (r == REDLOCK_REFUSED)
		k->code = loss_refused(c) ? EXIT_LOST : k->task->in->keep_ms && !k->code ? EXIT_FAILED : k->code;
	if (stderr_is_ready())
		complain("unlocking %s: %s", k->lease.name, redlock_errmsg(c));
}

/*
 * Ends the session. A process in the background stays for that until the daemon is back, and so does whoever asked to let go: the lock is free when that
 * returns. A signal ends it at once; then the lock stays until the grace is over.
 */
static void script_lock_leave(struct script_lock *k)
{
	k->task->grant = k->lease.validity.grant;
	if (k->whom.process >= 0 && k->code <= EXIT_LOST && late_quit_must(k->task) && !redlock_process(k->task->c))
		late_quit(k->task, k->asker);
	else
		redlock_close(k->task->c);
}

/* Blocks the signals that ask redlock to end. A descriptor that is readable when one has come, or a negative number: errno says why not. */
static int script_lock_signals(void)
{
	static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!signal_is_ignored(ending[i]))
			sigaddset(&set, ending[i]);
	signal(SIGPIPE, SIG_IGN); /* whoever reads from redlock may end first, and the lock is to be freed all the same */
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Holds the lock of task->grant, and unlocks it at the end. Returns the exit code of redlock. */
static int script_lock_run(struct keeper_task *task, const struct script_lock_for *whom)
{
	struct script_lock k = {.lease = {.task = task, .listens = script_lock_listens, .lost = script_lock_lost}, .task = task, .whom = *whom, .asker = -1};

	if (lease_begin(&k.lease)) {
		complain("cannot start: out of descriptors");
		script_lock_end(&k, EXIT_FAILED);
	} else {
		lease_hear_push(&k.lease); /* a push that came together with the answer to CHECK: the descriptor does not announce it */
	}
	while (!k.done) {
		int64_t now = redlock_now_us();

		validity_awake(&k.lease.validity, now);
		script_lock_decide(&k, now);
		if (!k.done)
			script_lock_sleep(&k);
	}
	script_lock_unlock(&k); /* also after a loss: a daemon that did not answer may still have the lock */
	script_lock_leave(&k);
	if (k.whom.listening >= 0)
		close(k.whom.listening); /* whoever hears the answer may hold the lock anew */
	release_socket_answer(k.asker, k.code);
	return k.code;
}

/* --- the lock --- */

struct script {
	struct invocation in; /* argv is the name of the script, for the label */
	struct keeper_task task;
	struct redlock_grant grant;
	char word[64], *words[2], command[256];
};

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
	whom.listening = release_socket_listen(in->pid, in->operand); /* without it, the end of the process still frees the lock */
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
	if (release_socket_is_taken(in->pid, in->operand)) {
		locks_held_shown(&in->operand, 1, shown, sizeof(shown));
		complain("process %d holds %s already, and would wait for itself: redlock hold --release comes first", (int)in->pid, shown);
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
