/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one world, here or in a child process, and prints its violation. */
#include "tests/sim/sweep/sweep.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_EVENTS  60

static struct world *world_new(void)
{
	struct world *w = malloc(sizeof(*w));

	if (!w)
		abort();
	return w;
}

#define WATCHED_AGAIN 4

/* Of the steps that took long, those stay that take as long when the world runs again. */
static void watch_again(const struct plan *p, struct step_watch *found)
{
	struct step_watch watch = {.processor_ns = sweep_processor_ns, .elapsed_ns = sweep_processor_ns, .heap_is_sorted = true};
	struct world *w = world_new();
	unsigned kept = 0;

	world_run(w, p, NULL, &watch);
	for (unsigned i = 0, k = 0; i < found->count; i++) {
		while (k < watch.count && watch.slow[k].number < found->slow[i].number)
			k++;
		if (k < watch.count && watch.slow[k].number == found->slow[i].number)
			found->slow[kept++] = watch.slow[k];
	}
	found->count = kept;
	world_release(w);
	free(w);
}

static void report_slow_step(const struct plan *p, struct step_watch *watch, struct report *r)
{
	for (unsigned i = 0; i < WATCHED_AGAIN && watch->count > 0; i++)
		watch_again(p, watch);
	if (watch->count == 0)
		return;
	r->what = INVARIANT_S40;
	r->name = -1;
	snprintf(r->text, sizeof(r->text), "step %llu, of daemon %u at %lld us, takes %lld us", (unsigned long long)watch->slow[0].number,
	         watch->slow[0].daemon, (long long)watch->slow[0].at, (long long)watch->slow[0].took_ns / 1000);
}

void report_of(const struct plan *p, FILE *trace, struct report *ret_report)
{
	struct step_watch watch = {.processor_ns = sweep_processor_ns, .elapsed_ns = sweep_elapsed_ns};
	struct world *w = world_new();

	world_run(w, p, trace, &watch);
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
	if (!w->failed)
		report_slow_step(p, &watch, ret_report);
	world_release(w);
	free(w);
}

void hang_after(unsigned seconds)
{
	const struct itimerval computed = {.it_value = {.tv_sec = seconds}};

	if (setitimer(ITIMER_PROF, &computed, NULL))
		abort();
	alarm(HANG_WAITS * seconds);
}

void report_crash(struct report *r, uint64_t seed, int status)
{
	memset(r, 0, sizeof(*r));
	r->seed = seed;
	r->what = INVARIANT_S21;
	r->name = -1;
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
		snprintf(r->text, sizeof(r->text), "it hangs");
	else
		snprintf(r->text, sizeof(r->text), "it crashes: status %d", status);
}

bool report_read(int fd, struct report *ret_report)
{
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(*ret_report)) {
		got = read(fd, (char *)ret_report + n, sizeof(*ret_report) - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

void report_write(int fd, const struct report *r)
{
	_Static_assert(sizeof(*r) <= PIPE_BUF, "a pipe must take it whole, between those of others");
	if (write(fd, r, sizeof(*r)) != (ssize_t)sizeof(*r))
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
		hang_after(HANG_SECONDS);
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		report_of(p, NULL, ret_report);
		report_write(fd[1], ret_report);
		_exit(0);
	}
	close(fd[1]);
	whole = report_read(fd[0], ret_report);
	close(fd[0]);
	waitpid(child, &status, 0);
	if (!whole)
		report_crash(ret_report, (uint64_t)p->seed, status);
}

/* --- printing a violation ---------------------------------------------------------------------------------------------- */

/* Is the line of the trace about this name, or about no name? */
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
