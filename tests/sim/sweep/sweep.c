/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs many seeds in a few processes and adds up their reports. Each worker takes the next seed from a shared page and writes its report into one pipe; a
 * keeper beside each worker waits for its end, reports the world that it crashed in, and starts another.
 */
#include "tests/sim/sweep/sweep.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared by all processes of a sweep. Seeds count from the first one. */
struct board {
	_Atomic uint64_t next; /* the next free seed */
	_Atomic uint64_t last; /* the last seed that is of interest */
	_Atomic bool interrupted;
	_Atomic uint64_t at[SWEEP_JOBS_MAX]; /* the seed that each worker runs */
};

static struct board *board;

static void interrupt(int signal)
{
	(void)signal;
	atomic_store(&board->interrupted, true);
}

/* --- workers --------------------------------------------------------------------------------------------------------- */

/* Seeds above a violation are of no more interest. */
static void board_lower(const struct sweep *s, uint64_t i)
{
	uint64_t last = atomic_load(&board->last);

	while (!s->keep_going && i < last && !atomic_compare_exchange_weak(&board->last, &last, i))
		;
}

static bool seed_take(const struct sweep *s, double until, uint64_t *ret_i)
{
	if (atomic_load(&board->interrupted) || (until > 0 && sweep_clock() >= until))
		return false;
	do
		*ret_i = atomic_fetch_add(&board->next, 1);
	while (s->only && *ret_i < s->count && !seed_is_of(s->from + *ret_i, s->only));
	return *ret_i < s->count && *ret_i <= atomic_load(&board->last);
}

static void __attribute__((noreturn)) worker_run(const struct sweep *s, unsigned job, double until, int fd)
{
	struct plan *p = malloc(sizeof(*p));
	struct report r;
	uint64_t i;

	if (!p)
		abort();
	while (seed_take(s, until, &i)) {
		atomic_store(&board->at[job], i);
		hang_after(s->hang_after ? s->hang_after : HANG_SECONDS);
		if (s->draw)
			s->draw(s, s->from + i, p);
		else
			plan_draw(p, s->from + i);
		(s->run ? s->run : report_of)(p, NULL, &r);
		r.seed = s->from + i;
		hang_after(0);
		report_write(fd, &r);
		if (r.what != INVARIANT_NONE)
			board_lower(s, i);
	}
	_exit(0);
}

static pid_t process_start(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	return pid;
}

static void __attribute__((noreturn)) keeper_run(const struct sweep *s, unsigned job, double until, int fd)
{
	struct report r;
	pid_t worker;
	int status;

	for (;;) {
		worker = process_start();
		if (worker == 0)
			worker_run(s, job, until, fd);
		while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
			;
		if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE))
			_exit(0); /* it is done, or the reader is gone */
		report_crash(&r, s->from + atomic_load(&board->at[job]), status);
		report_write(fd, &r);
		board_lower(s, atomic_load(&board->at[job]));
	}
}

/* --- results --------------------------------------------------------------------------------------------------------- */

static void tally_add(struct tally *to, const struct tally *t)
{
	to->grants += t->grants;
	to->events += t->events;
	to->takeovers += t->takeovers;
	to->rejoins += t->rejoins;
	to->heads += t->heads;
	to->admission_waits += t->admission_waits;
	if (t->most_names > to->most_names)
		to->most_names = t->most_names;
	if (t->most_waited > to->most_waited)
		to->most_waited = t->most_waited;
	to->published += t->published;
	to->heard += t->heard;
	to->words += t->words;
	to->told += t->told;
	to->records += t->records;
	to->restored += t->restored;
	to->resumed += t->resumed;
	to->adopted += t->adopted;
	to->together += t->together;
	to->permits += t->permits;
	to->handed_on += t->handed_on;
	to->partial += t->partial;
	for (int i = 0; i < FAULT_N; i++)
		to->faults[i] += t->faults[i];
}

static void kind_add(struct sweep_kind *k, const struct report *r)
{
	uint64_t n = k->count < SWEEP_SEEDS_KEPT ? k->count : SWEEP_SEEDS_KEPT, at = n;

	while (at > 0 && k->seed[at - 1] > r->seed)
		at--;
	if (at < SWEEP_SEEDS_KEPT) {
		n = n < SWEEP_SEEDS_KEPT ? n : SWEEP_SEEDS_KEPT - 1;
		memmove(k->seed + at + 1, k->seed + at, (n - at) * sizeof(k->seed[0]));
		k->seed[at] = r->seed;
	}
	if (at == 0)
		k->first = *r;
	k->count++;
}

static void result_add(struct sweep_result *to, const struct report *r)
{
	to->seeds++;
	to->hash += mix(r->seed, r->hash);
	to->sim_us += r->sim_us;
	tally_add(&to->tally, &r->tally);
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
	kind_add(&to->kind[r->what], r);
}

static void report_take(const struct sweep *s, const struct report *r, struct sweep_result *to)
{
	result_add(to, r);
	if (r->what != INVARIANT_NONE && s->found)
		s->found(s, r);
	else if (r->what != INVARIANT_NONE && s->keep_going)
		printf("seed %llu: %s: %s (build/sim --seed %llu --trace)\n", (unsigned long long)r->seed, invariant_table[r->what].word, r->text,
		       (unsigned long long)r->seed);
}

/* --- a sweep --------------------------------------------------------------------------------------------------------- */

static void board_open(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		abort();
	atomic_init(&board->last, UINT64_MAX);
}

/* Starts the processes of a sweep. Returns the reading end of the pipe. */
static int sweep_start(const struct sweep *s, double until, pid_t *ret_keeper)
{
	int fd[2];

	if (pipe(fd))
		abort();
	for (unsigned job = 0; job < s->jobs; job++) {
		ret_keeper[job] = process_start();
		if (ret_keeper[job] > 0)
			continue;
		close(fd[0]);
		keeper_run(s, job, until, fd[1]);
	}
	close(fd[1]);
	return fd[0];
}

static double cpu_clock(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void sweep_run(const struct sweep *s, struct sweep_result *ret_result)
{
	struct sigaction catch = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, old_int, old_term;
	double began = sweep_clock(), printed = began, cpu = cpu_clock();
	pid_t keeper[SWEEP_JOBS_MAX];
	struct report r;
	int fd;

	memset(ret_result, 0, sizeof(*ret_result));
	board_open();
	sigaction(SIGINT, &catch, &old_int);
	sigaction(SIGTERM, &catch, &old_term);
	fd = sweep_start(s, s->seconds > 0 ? began + s->seconds : 0, keeper);
	while (report_read(fd, &r)) {
		report_take(s, &r, ret_result);
		if (s->talk && sweep_clock() >= printed + 60) {
			printed = sweep_clock();
			printf("%.0f s: %llu worlds, of which %llu fail\n", printed - began, (unsigned long long)ret_result->seeds,
			       (unsigned long long)ret_result->failed);
		}
	}
	close(fd);
	for (unsigned job = 0; job < s->jobs; job++)
		while (waitpid(keeper[job], NULL, 0) < 0 && errno == EINTR)
			;
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	ret_result->next = s->from + (board->next < s->count ? board->next : s->count);
	ret_result->interrupted = board->interrupted;
	ret_result->seconds = sweep_clock() - began;
	ret_result->cpu_seconds = cpu_clock() - cpu;
	munmap(board, sizeof(*board));
}

void sweep_print(const struct sweep_result *r)
{
	printf("%llu seeds in %.1f s (%.1f a second, %.1f a second and core), %.1f simulated hours, %lld grants checked, %lld events\n",
	       (unsigned long long)r->seeds, r->seconds, (double)r->seeds / r->seconds, (double)r->seeds / r->cpu_seconds,
	       (double)r->sim_us / 3.6e9, (long long)r->tally.grants, (long long)r->tally.events);
	printf("hash %016llx\n", (unsigned long long)r->hash);
	printf("faults:");
	for (int i = 0; i < FAULT_N; i++)
		printf(" %s %lld", fault_table[i].word, (long long)r->tally.faults[i]);
	printf("; and in healed worlds: daemon-crash %lld node-blank %lld dead-head %lld\n", (long long)r->tally.takeovers,
	       (long long)r->tally.rejoins, (long long)r->tally.heads);
	printf("published %lld, heard %lld; handed over without a round %lld; "
	       "at most %lld requests waited and %lld names were known at a time; rounds that waited for busy stores %lld\n",
	       (long long)r->tally.published, (long long)r->tally.heard, (long long)r->tally.handed_on, (long long)r->tally.most_waited,
	       (long long)r->tally.most_names, (long long)r->tally.admission_waits);
	printf("daemons asked each other who has a name, or told it, %lld times; %lld lines tell it\n", (long long)r->tally.words,
	       (long long)r->tally.told);
	printf("commands of which a store refused some calls: %lld\n", (long long)r->tally.partial);
	printf("journal: %lld records, %lld restored; %lld sessions resumed, %lld leases adopted; %lld readers joined those of other daemons; %lld permits\n",
	       (long long)r->tally.records, (long long)r->tally.restored, (long long)r->tally.resumed, (long long)r->tally.adopted,
	       (long long)r->tally.together, (long long)r->tally.permits);
	printf("longest wait for a free name in a healed world: %lld ms; after an UNLOCK, where all wake-ups arrive: %lld ms; "
	       "while a minority of the nodes flaps: %lld ms\n",
	       (long long)r->longest_free / 1000, (long long)r->longest_woken / 1000, (long long)r->longest_flapping / 1000);
}
