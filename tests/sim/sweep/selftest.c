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

static bool a_plan_that_was_written_and_read_is_the_same(struct plan *p)
{
	struct plan *q = malloc(sizeof(*q));
	FILE *file = tmpfile();
	struct report one, two;
	bool same;

	if (!q || !file)
		abort();
	plan_draw(p, 7);
	plan_write(p, file);
	rewind(file);
	same = plan_read(q, file) == 0;
	fclose(file);
	report_of(p, NULL, &one);
	if (same)
		report_of(q, NULL, &two);
	same = same && one.hash == two.hash;
	free(q);
	return same;
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
