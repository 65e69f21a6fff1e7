/* SPDX-License-Identifier: BSD-2-Clause */
/* Many seeds on a few processes, and what came of them. */
#include "tests/sim/sweep.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_SECONDS 60
#define LAST_EVENTS  60

static struct world *world_new(void)
{
	struct world *w = malloc(sizeof(*w));

	if (!w)
		abort();
	return w;
}

void report_of(const struct plan *p, FILE *trace, struct report *ret_report)
{
	struct world *w = world_new();

	world_run(w, p, trace);
	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->seed = (uint64_t)p->seed;
	ret_report->hash = w->hash;
	ret_report->what = w->checker.violation.what;
	ret_report->name = w->checker.violation.name;
	memcpy(ret_report->text, w->checker.violation.text, sizeof(ret_report->text));
	ret_report->sim_us = w->now;
	ret_report->longest_free = w->checker.longest_free;
	ret_report->longest_flapping = w->checker.longest_flapping;
	ret_report->longest_woken = w->checker.longest_woken;
	ret_report->tally = w->tally;
	w->trace = NULL;
	world_release(w);
	free(w);
}

static void report_crash(struct report *r, uint64_t seed, int status)
{
	memset(r, 0, sizeof(*r));
	r->seed = seed;
	r->what = INVARIANT_S21;
	r->name = -1;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(r->text, sizeof(r->text), "it hangs");
	else
		snprintf(r->text, sizeof(r->text), "it crashes: status %d", status);
}

static bool read_all(int fd, void *p, size_t n)
{
	while (n > 0) {
		ssize_t got = read(fd, p, n);

		if (got <= 0)
			return false;
		p = (char *)p + got;
		n -= (size_t)got;
	}
	return true;
}

static void write_all(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n) /* a pipe takes it whole: it is shorter than PIPE_BUF */
		_exit(3);
}

void report_of_child(const struct plan *p, struct report *ret_report)
{
	int fd[2], status;
	pid_t child;
	bool whole;

	if (pipe(fd))
		abort();
	fflush(stdout);
	child = fork();
	if (child < 0)
		abort();
	if (child == 0) {
		alarm(HANG_SECONDS);
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		report_of(p, NULL, ret_report);
		write_all(fd[1], ret_report, sizeof(*ret_report));
		_exit(0);
	}
	close(fd[1]);
	whole = read_all(fd[0], ret_report, sizeof(*ret_report));
	close(fd[0]);
	waitpid(child, &status, 0);
	if (!whole)
		report_crash(ret_report, (uint64_t)p->seed, status);
}

/* --- a sweep --------------------------------------------------------------------------------------------------------- */

/* Every jobs-th seed, from the first that is not done. */
static void sweep_work(const struct sweep *s, uint64_t first, int fd)
{
	struct plan *p = malloc(sizeof(*p));
	struct report r;

	if (!p)
		abort();
	for (uint64_t i = first; i < s->count; i += s->jobs) {
		alarm(HANG_SECONDS);
		plan_draw(p, s->from + i);
		report_of(p, NULL, &r);
		write_all(fd, &r, sizeof(r));
		if (r.what != INVARIANT_NONE && !s->keep_going)
			break;
	}
	_exit(0);
}

struct worker {
	pid_t pid;
	int fd;
	uint64_t next; /* which it works on */
};

static void worker_start(const struct sweep *s, struct worker *w, uint64_t first)
{
	int fd[2];

	if (pipe(fd))
		abort();
	fflush(stdout);
	w->pid = fork();
	if (w->pid < 0)
		abort();
	if (w->pid == 0) {
		close(fd[0]);
		sweep_work(s, first, fd[1]);
	}
	close(fd[1]);
	w->fd = fd[0];
	w->next = first;
}

static void result_add(struct sweep_result *to, const struct report *r)
{
	to->seeds++;
	to->sim_us += r->sim_us;
	to->tally.grants += r->tally.grants;
	to->tally.events += r->tally.events;
	to->tally.takeovers += r->tally.takeovers;
	to->tally.rejoins += r->tally.rejoins;
	to->tally.heads += r->tally.heads;
	to->tally.published += r->tally.published;
	to->tally.heard += r->tally.heard;
	to->tally.records += r->tally.records;
	to->tally.restored += r->tally.restored;
	to->tally.resumed += r->tally.resumed;
	to->tally.adopted += r->tally.adopted;
	to->tally.handed_on += r->tally.handed_on;
	for (int i = 0; i < FAULT_N; i++)
		to->tally.faults[i] += r->tally.faults[i];
	if (r->longest_free > to->longest_free)
		to->longest_free = r->longest_free;
	if (r->longest_flapping > to->longest_flapping)
		to->longest_flapping = r->longest_flapping;
	if (r->longest_woken > to->longest_woken)
		to->longest_woken = r->longest_woken;
	if (r->what == INVARIANT_NONE)
		return;
	if (to->failed++ == 0 || r->seed < to->first.seed)
		to->first = *r;
}

static void report_take(const struct sweep *s, const struct report *r, struct sweep_result *to)
{
	result_add(to, r);
	if (r->what != INVARIANT_NONE && s->keep_going)
		printf("seed %llu: %s: %s\n", (unsigned long long)r->seed, invariant_table[r->what].word, r->text);
}

/* False: the worker has ended. One that crashed is replaced by another, for the seeds that are left. */
static bool worker_read(const struct sweep *s, struct worker *w, struct sweep_result *to)
{
	struct report r;
	int status;

	if (read_all(w->fd, &r, sizeof(r))) {
		w->next += s->jobs;
		report_take(s, &r, to);
		return true;
	}
	close(w->fd);
	waitpid(w->pid, &status, 0);
	if (status == 0)
		return false;
	report_crash(&r, s->from + w->next, status);
	report_take(s, &r, to);
	if (!s->keep_going || w->next + s->jobs >= s->count)
		return false;
	worker_start(s, w, w->next + s->jobs);
	return true;
}

/* A smaller seed has failed: what it would find is of no interest. */
static bool worker_stop(struct worker *w)
{
	kill(w->pid, SIGKILL);
	close(w->fd);
	waitpid(w->pid, NULL, 0);
	return false;
}

void sweep_run(const struct sweep *s, struct sweep_result *ret_result)
{
	struct worker worker[16];
	bool alive[16], any = true;
	double began = sweep_clock();

	memset(ret_result, 0, sizeof(*ret_result));
	for (unsigned i = 0; i < s->jobs; i++) {
		worker_start(s, &worker[i], i);
		alive[i] = true;
	}
	/* In turns: a worker that is ahead waits in its pipe, which holds many reports. */
	while (any) {
		any = false;
		for (unsigned i = 0; i < s->jobs; i++) {
			if (alive[i] && !s->keep_going && ret_result->failed && s->from + worker[i].next > ret_result->first.seed)
				alive[i] = worker_stop(&worker[i]);
			alive[i] = alive[i] && worker_read(s, &worker[i], ret_result);
			any |= alive[i];
		}
	}
	ret_result->seconds = sweep_clock() - began;
}

void sweep_print(const struct sweep_result *r)
{
	printf("%llu seeds in %.1f s (%.1f a second), %.1f simulated hours, %lld grants checked, %lld events\n",
	       (unsigned long long)r->seeds, r->seconds, (double)r->seeds / r->seconds, (double)r->sim_us / 3.6e9,
	       (long long)r->tally.grants, (long long)r->tally.events);
	printf("faults:");
	for (int i = 0; i < FAULT_N; i++)
		printf(" %s %lld", fault_table[i].word, (long long)r->tally.faults[i]);
	printf("; and in healed worlds: daemon-crash %lld node-blank %lld dead-head %lld\n", (long long)r->tally.takeovers,
	       (long long)r->tally.rejoins, (long long)r->tally.heads);
	printf("published %lld, heard %lld; handed on without a round %lld\n", (long long)r->tally.published,
	       (long long)r->tally.heard, (long long)r->tally.handed_on);
	printf("journal: %lld records, %lld restored; %lld sessions resumed, %lld leases adopted\n", (long long)r->tally.records,
	       (long long)r->tally.restored, (long long)r->tally.resumed, (long long)r->tally.adopted);
	printf("longest that a free name was waited for in a healed world: %lld ms; one that was unlocked, where all wake-ups are heard: %lld ms; "
	       "while a minority of the nodes flaps: %lld ms\n",
	       (long long)r->longest_free / 1000, (long long)r->longest_woken / 1000, (long long)r->longest_flapping / 1000);
}

/* --- a violation ----------------------------------------------------------------------------------------------------- */

/* Is the line of the trace about this name, or about none? */
static bool line_concerns(const char *line, int64_t name)
{
	const char *k = line;

	if (name < 0)
		return true;
	if (strstr(line, "PROBE"))
		return false;
	while ((k = strchr(k, 'k')) && !(k[1] >= '0' && k[1] <= '7' && (k == line || k[-1] == ' ' || k[-1] == '=')))
		k++;
	return !k || k[1] - '0' == name;
}

void violation_print(const struct plan *p, const struct report *r, const char *replay)
{
	char *text = NULL, *last[LAST_EVENTS] = {NULL}, *rest = NULL;
	size_t n = 0, count = 0;
	FILE *trace = open_memstream(&text, &n);
	struct report again;

	if (!trace)
		abort();
	if (strncmp(r->text, "it ", 3) != 0)
		report_of(p, trace, &again);
	fclose(trace);
	printf("VIOLATION of %s (%s)\n  %s\n  seed %llu, version %s\n", invariant_table[r->what].word,
	       invariant_table[r->what].what, r->text, (unsigned long long)r->seed, REDLOCKD_VERSION);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (line_concerns(line, r->name))
			last[count++ % LAST_EVENTS] = line;
	for (size_t i = count > LAST_EVENTS ? count - LAST_EVENTS : 0; i < count; i++)
		printf("  %.220s\n", last[i % LAST_EVENTS]);
	printf("replay: %s\n", replay);
	free(text);
}
