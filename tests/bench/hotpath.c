/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOCK and UNLOCK on the memory store, from a line to its answer, for callgrind, which counts only hotpath_lock and
 * hotpath_unlock. The allocator is wrapped, because a request must not reach it. Prints how many LOCKs there were,
 * warming up included, and how many allocations once warm.
 */
#include "tests/fixture/lone_service.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES  64 /* held at a time, as a busy session does */
#define ROUNDS 100

static long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n)
{
	allocations++;
	return __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

static unsigned long answered;

static void answer_count(void *context, uint64_t session, struct span bytes)
{
	(void)context;
	(void)session;
	if (!span_starts(bytes, SPAN("OK name=orders/"))) {
		fprintf(stderr, "not OK: %.*s", (int)bytes.n, bytes.p);
		exit(EXIT_FAILURE);
	}
	answered++;
}

struct line {
	char text[64];
	size_t n;
};

static struct line locks[NAMES], unlocks[NAMES];

static void lines_make(struct line *line, const char *verb)
{
	for (int name = 0; name < NAMES; name++)
		line[name].n = (size_t)snprintf(line[name].text, sizeof(line[name].text), "%s orders/%d", verb, name);
}

/* 20 µs a request: what a loaded daemon sees. */
static void requests_step(struct lone_service *w, const struct line *line)
{
	for (int name = 0; name < NAMES; name++) {
		struct line bytes = line[name];

		w->now.us += 20;
		if (lone_service_line(w, 1, bytes.text, bytes.n))
			abort();
	}
}

void hotpath_lock(struct lone_service *w);
void hotpath_unlock(struct lone_service *w);

__attribute__((noinline)) void hotpath_lock(struct lone_service *w)
{
	requests_step(w, locks);
}

__attribute__((noinline)) void hotpath_unlock(struct lone_service *w)
{
	requests_step(w, unlocks);
}

static void rounds_run(struct lone_service *w, int rounds)
{
	while (rounds--) {
		hotpath_lock(w);
		hotpath_unlock(w);
	}
}

int main(void)
{
	struct lone_service w;

	lines_make(locks, "LOCK");
	lines_make(unlocks, "UNLOCK");
	lone_service_init(&w);
	lone_service_settle(&w);
	w.sent = answer_count;
	lone_service_open(&w, 1);
	rounds_run(&w, ROUNDS); /* pools, tables and arenas find their size */
	allocations = 0;
	rounds_run(&w, ROUNDS);
	if (answered != 4UL * ROUNDS * NAMES)
		return EXIT_FAILURE;
	printf("%d %ld\n", 2 * ROUNDS * NAMES, allocations);
	lone_service_release(&w);
	return EXIT_SUCCESS;
}
