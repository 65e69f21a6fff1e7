/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nanoseconds for an ACQUIRE and its RELEASE on the memory store, with 1, 1000 and 1,000,000 other names held, and for a renewal of one
 * of those. Names are visited in an order that no cache foresees. Prints figures and judges nothing.
 */
#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/store/memory.h"

#include <stdio.h>
#include <stdlib.h>

#define PAIRS 1000000U

struct name {
	char text[24];
	unsigned n;
};

static struct span value_of(char *out, unsigned i)
{
	return (struct span){out, (size_t)sprintf(out, "0123456789abcdef:%u:0123456789abcdef0123456789abcdef", i)};
}

static char call(struct memory *m, enum call_kind kind, const struct name *name, struct span value, struct instant now)
{
	const struct call c = {
		.kind = kind,
		.name = {name->text, name->n},
		.value = value,
		.new_value = value,
		.marker = memory_marker(m),
		.px_ms = 30000,
	};
	struct answer a;

	memory_call(m, &c, now, &a);
	return a.code;
}

static void expect(char got, char wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "answered %c instead of %c\n", got, wanted);
	exit(1);
}

static struct memory *joined(void)
{
	const struct memory_conf conf = {.seed = {1, 2}, .epoch_us = clock_wall_us(), .skew_us = 60 * SEC, .run_id = "bench"};
	const struct call join = {.kind = CALL_MARK, .new_marker = SPAN("j|bench")};
	struct memory *m = memory_new(&conf);
	struct answer a;

	memory_call(m, &join, (struct instant){0}, &a);
	return m;
}

static void report(const char *what, unsigned held, struct instant from, unsigned n)
{
	printf("memory: %-16s %8u names held  %6.1f ns\n", what, held, (double)instant_diff(clock_boottime(), from) * 1000 / n);
}

static void measure(const struct name *names, unsigned held)
{
	struct memory *m = joined();
	struct instant now = {SEC}, from;
	uint32_t at = 1;
	struct span value;
	char text[64];
	unsigned i;

	for (i = 0; i < held; i++)
		expect(call(m, CALL_ACQUIRE, &names[PAIRS + i], value_of(text, 1), now), 'G');
	value = value_of(text, 1);
	from = clock_boottime();
	for (i = 0; i < PAIRS; i++, now.us += 2, at = at * 1664525 + 1013904223) {
		expect(call(m, CALL_ACQUIRE, &names[at % PAIRS], value, now), 'G');
		expect(call(m, CALL_RELEASE, &names[at % PAIRS], value, now), 'R');
	}
	report("acquire+release", held, from, PAIRS);
	from = clock_boottime();
	for (i = 0; i < PAIRS; i++, at = at * 1664525 + 1013904223)
		expect(call(m, CALL_EXTEND, &names[PAIRS + at % held], value, now), 'E');
	report("extend", held, from, PAIRS);
	memory_free(m);
}

int main(void)
{
	struct name *names = mem_alloc(2 * PAIRS * sizeof(*names));
	unsigned i;

	for (i = 0; i < 2 * PAIRS; i++)
		names[i].n = (unsigned)sprintf(names[i].text, "orders/%u", i);
	measure(names, 1);
	measure(names, 1000);
	measure(names, 1000000);
	free(names);
	return 0;
}
