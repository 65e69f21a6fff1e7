/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the simulator itself: it must be quiet where nothing happens, the same twice, and rough where it says so. */
#include "tests/sim/sweep.h"

#include <stdlib.h>

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

	plan_draw(p, 3);
	if (p->faults < 2)
		return false;
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
