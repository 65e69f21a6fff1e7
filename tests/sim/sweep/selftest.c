/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the simulator itself: a world without faults violates nothing, a seed gives the same world twice, every kind of fault occurs, a sweep loses no seed.
 */
#include "tests/sim/sweep/sweep.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FEW  24
#define MANY 100

static bool an_empty_world_does_nothing(struct plan *p)
{
	struct report r;

	memset(p, 0, sizeof(*p));
	p->nodes = 3;
	p->names = 1;
	p->max_lease_us = SEC;
	p->length_us = 10 * SEC;
	report_of(p, NULL, &r);
	return r.what == INVARIANT_NONE && r.tally.grants == 0 && r.tally.events < 12;
}

static bool a_world_without_clients_only_looks_at_its_stores(struct plan *p)
{
	struct report r;

	plan_draw(p, 1);
	p->clients = p->jobs = p->faults = 0;
	report_of(p, NULL, &r);
	return r.what == INVARIANT_NONE && r.tally.grants == 0;
}

static bool a_world_without_faults_violates_nothing_and_grants_soon(struct plan *p)
{
	struct report r;
	int64_t grants = 0;

	for (uint64_t seed = 1; seed <= FEW; seed++) {
		plan_draw(p, seed);
		p->faults = 0;
		report_of(p, NULL, &r);
		if (r.what != INVARIANT_NONE) {
			printf("  seed %llu: %s: %s\n", (unsigned long long)seed, invariant_table[r.what].word, r.text);
			return false;
		}
		grants += r.tally.grants;
	}
	printf("  %lld grants in %d worlds\n", (long long)grants, FEW);
	return grants > FEW * 10;
}

static bool the_same_seed_gives_the_same_run(struct plan *p)
{
	struct report one, two;

	for (uint64_t seed = 1; seed <= FEW; seed++) {
		plan_draw(p, seed);
		report_of(p, NULL, &one);
		plan_draw(p, seed);
		report_of(p, NULL, &two);
		if (one.hash != two.hash)
			return false;
	}
	return true;
}

/* Through a file. */
static bool plan_copy(struct plan *ret_plan, const struct plan *p)
{
	FILE *file = tmpfile();
	bool read;

	if (!file)
		abort();
	plan_write(p, file);
	rewind(file);
	read = plan_read(ret_plan, file) == 0;
	fclose(file);
	return read;
}

static bool a_plan_that_was_written_and_read_is_the_same(struct plan *p)
{
	struct plan *q = malloc(sizeof(*q));
	struct report one, two;
	bool same;

	if (!q)
		abort();
	plan_draw(p, 7);
	same = plan_copy(q, p);
	report_of(p, NULL, &one);
	if (same)
		report_of(q, NULL, &two);
	same = same && one.hash == two.hash;
	free(q);
	return same;
}

/* What a drawn world keeps: see plan/vary.c. A scene may have gone beyond. */
static bool is_in_bounds(const struct plan *p, const struct plan *of)
{
	int64_t end = p->length_us + settle_us(p) + SETTLED_US, longest = p->max_lease_us / MSEC;
	bool all = p->faults <= FAULTS_MAX && p->jobs <= JOBS_MAX && plan_class(p) <= plan_class(of);

	for (unsigned i = 0; i < of->jobs; i++) {
		const struct job *j = &of->job[i];

		end = j->at_us + p->length_us - of->length_us > end ? j->at_us + p->length_us - of->length_us : end;
		longest = j->ttl_ms > longest ? j->ttl_ms : longest;
	}
	for (unsigned i = 0; i < p->faults; i++) {
		const struct fault *f = &p->fault[i];

		all &= f->at_us >= 0 && f->for_us >= 0 && f->a >= 0 && f->b >= 0;
		all &= !fault_is_late(p, f) || f->at_us + f->for_us <= end;
	}
	for (unsigned i = 0; i < p->jobs; i++)
		all &= p->job[i].client < p->clients && p->job[i].at_us <= end && p->job[i].ttl_ms <= longest;
	return all;
}

static bool variations_differ_and_each_replays_byte_for_byte(struct plan *p)
{
	struct plan *q = malloc(sizeof(*q)), *of = malloc(sizeof(*of));
	struct report one, two;
	uint64_t hashes[FEW] = {0};
	unsigned alike = 0;
	bool same = true;

	if (!q || !of)
		abort();
	for (uint64_t i = 0; i < FEW && same; i++) {
		plan_draw(of, 1 + i / 4);
		*p = *of;
		plan_vary(p, i);
		report_of(p, NULL, &one);
		*q = *of;
		plan_vary(q, i);
		same = memcmp(p, q, sizeof(*p)) == 0 && is_in_bounds(p, of) && plan_copy(q, p);
		report_of(q, NULL, &two);
		same = same && one.hash == two.hash;
		alike += i > 0 && one.hash == hashes[i - 1];
		hashes[i] = one.hash;
	}
	free(of);
	free(q);
	return same && alike == 0;
}

/* Which nodes flap in the healed world, as bits. */
static int64_t plan_flapping(const struct plan *p)
{
	int64_t nodes = 0;

	for (unsigned i = 0; i < p->faults; i++)
		if (fault_is_late(p, &p->fault[i]))
			nodes |= INT64_C(1) << (fault_table[p->fault[i].kind].of == OF_DAEMON ? p->fault[i].b : p->fault[i].a);
	return nodes;
}

static bool variations_move_no_start_and_keep_a_minority_flapping(struct plan *p)
{
	struct plan *of = malloc(sizeof(*of));
	uint64_t seed = 0;
	bool good = true;

	if (!of)
		abort();
	for (unsigned i = 0; i < MANY && good; i++) {
		int64_t starts = 0;

		do
			plan_draw(of, ++seed);
		while (!plan_flapping(of) && !of->strangers);
		for (unsigned f = 0; f < of->faults; f++)
			starts += of->fault[f].at_us < of->warm_us;
		*p = *of;
		plan_vary(p, i);
		for (unsigned f = 0; f < p->faults; f++)
			starts -= p->fault[f].at_us < p->warm_us;
		good = starts == 0 && is_in_bounds(p, of) && (plan_flapping(p) & ~plan_flapping(of)) == 0;
	}
	free(of);
	return good;
}

static bool without_one_fault_the_rest_stays_in_its_place(struct plan *p)
{
	struct fault last;

	p->faults = 0;
	for (uint64_t seed = 3; p->faults < 2; seed++)
		plan_draw(p, seed);
	last = p->fault[p->faults - 1];
	memmove(&p->fault[0], &p->fault[1], (p->faults - 1) * sizeof(*p->fault));
	p->faults--;
	return memcmp(&last, &p->fault[p->faults - 1], sizeof(last)) == 0;
}

static bool every_kind_of_fault_occurs(struct plan *p)
{
	struct tally sum = {0};
	bool all = true;

	for (uint64_t seed = 1; seed <= MANY; seed++) {
		struct report r;

		plan_draw(p, seed);
		report_of(p, NULL, &r);
		for (int i = 0; i < FAULT_N; i++)
			sum.faults[i] += r.tally.faults[i];
	}
	printf("  over %d seeds:", MANY);
	for (int i = 0; i < FAULT_N; i++) {
		printf(" %s %lld", fault_table[i].word, (long long)sum.faults[i]);
		all &= sum.faults[i] > 0;
	}
	putchar('\n');
	return all;
}

static bool clocks_run_both_ways(struct plan *p)
{
	struct host h = {.ppm = -4900, .base_us = 123456789, .halted_us = 777};

	(void)p;
	for (int64_t now = 1000; now < 100 * SEC; now = now * 3 / 2 + 7) {
		int64_t back = host_true(&h, host_boot(&h, now));

		if (back > now || host_boot(&h, back).us < host_boot(&h, now).us ||
		    host_boot(&h, back - 1).us >= host_boot(&h, now).us)
			return false;
	}
	return true;
}

/* --- sweeps ---------------------------------------------------------------------------------------------------------- */

/*
 * Stands in for a world; its seed decides all: each 7th violates S1, each 31st crashes, each 83rd computes for ever, each 59th sleeps for longer than a world
 * may compute.
 */
static void strange_world(const struct plan *p, FILE *trace, struct report *ret_report)
{
	const struct timespec pause = {.tv_sec = 1, .tv_nsec = 500000000};

	(void)trace;
	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->seed = (uint64_t)p->seed;
	ret_report->sim_us = p->seed;
	if (p->seed % 83 == 0)
		for (;;)
			;
	if (p->seed % 59 == 0)
		nanosleep(&pause, NULL);
	if (p->seed % 31 == 0)
		abort();
	if (p->seed % 7 == 0)
		ret_report->what = INVARIANT_S1;
}

static bool a_sweep_runs_each_seed_once_whatever_crashes_or_hangs(struct plan *p)
{
	struct sweep s = {.from = 1, .count = 100, .jobs = 3, .keep_going = true, .hang_after = 1, .run = strange_world};
	static struct sweep_result r;
	const struct sweep_kind *died = &r.kind[INVARIANT_S21], *failed = &r.kind[INVARIANT_S1];
	int64_t ended = 100 * 101 / 2 - 31 - 62 - 93 - 83;

	(void)p;
	sweep_run(&s, &r);
	return r.seeds == 100 && r.sim_us == ended && r.next == 101 && died->count == 4 && died->seed[0] == 31 && died->seed[2] == 83 &&
	       strstr(died->first.text, "crashes") && failed->count == 14 && failed->seed[0] == 7 && failed->seed[4] == 35 && r.first.seed == 7;
}

static bool a_sweep_that_stops_has_found_the_lowest_seed(struct plan *p)
{
	struct sweep s = {.from = 15, .count = 1000, .jobs = 4, .run = strange_world};
	static struct sweep_result r;

	(void)p;
	for (int i = 0; i < 20; i++) {
		sweep_run(&s, &r);
		if (r.first.seed != 21)
			return false;
	}
	return true;
}

static bool a_campaign_goes_on_where_the_last_one_stopped(struct plan *p)
{
	char folder[] = "/tmp/sim-XXXXXX", path[64];
	struct sweep s = {.from = 99, .count = 5, .jobs = 2, .run = strange_world}, again = {.count = 1, .jobs = 2, .run = strange_world};
	bool good;

	(void)p;
	if (!mkdtemp(folder))
		return false;
	good = campaign_run(folder, &s) == 0 && campaign_run(folder, &again) == 0 && again.from == 104;
	snprintf(path, sizeof(path), "%s/sweep.next", folder);
	return !remove(path) && !remove(folder) && good;
}

int selftest_run(void)
{
	static const struct {
		const char *name;
		bool (*run)(struct plan *p);
	} test[] = {
#define TEST(name) {#name, name}
		TEST(clocks_run_both_ways),
		TEST(an_empty_world_does_nothing),
		TEST(a_world_without_clients_only_looks_at_its_stores),
		TEST(a_world_without_faults_violates_nothing_and_grants_soon),
		TEST(the_same_seed_gives_the_same_run),
		TEST(a_plan_that_was_written_and_read_is_the_same),
		TEST(variations_differ_and_each_replays_byte_for_byte),
		TEST(variations_move_no_start_and_keep_a_minority_flapping),
		TEST(without_one_fault_the_rest_stays_in_its_place),
		TEST(every_kind_of_fault_occurs),
		TEST(a_sweep_runs_each_seed_once_whatever_crashes_or_hangs),
		TEST(a_sweep_that_stops_has_found_the_lowest_seed),
		TEST(a_campaign_goes_on_where_the_last_one_stopped),
#undef TEST
	};
	int count = sizeof(test) / sizeof(test[0]), failed = 0;
	struct plan *p = malloc(sizeof(*p));

	if (!p)
		abort();
	for (int i = 0; i < count; i++) {
		bool ok = test[i].run(p);

		printf("%s %s\n", ok ? "ok" : "FAILED", test[i].name);
		failed += !ok;
	}
	free(p);
	printf("%d passed, %d failed\n", count - failed, failed);
	return failed;
}
