/* SPDX-License-Identifier: BSD-2-Clause */
/* A sweep that continues over many days: where the next one begins, which invariants were violated how often, and a small plan of each violation. */
#include "tests/sim/sweep/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PATH_ROOM 512

/* --- where it continues ------------------------------------------------------------------------------------------------ */

static void next_path(const char *folder, char *out)
{
	snprintf(out, PATH_ROOM, "%s/sweep.next", folder);
}

/* 0: no sweep ended here before. */
static uint64_t next_read(const char *folder)
{
	char path[PATH_ROOM];
	uint64_t next = 0;
	FILE *in;

	next_path(folder, path);
	in = fopen(path, "r");
	if (!in)
		return 0;
	if (fscanf(in, "%" SCNu64, &next) != 1)
		next = 0;
	fclose(in);
	return next;
}

/* Writes the file whole or not at all. */
static bool next_write(const char *folder, uint64_t next)
{
	char path[PATH_ROOM], new[PATH_ROOM + 4];
	bool written;
	FILE *out;

	next_path(folder, path);
	snprintf(new, sizeof(new), "%s.new", path);
	out = fopen(new, "w");
	if (!out)
		return false;
	written = fprintf(out, "%" PRIu64 "\n", next) > 0;
	return fclose(out) == 0 && written && rename(new, path) == 0;
}

static uint64_t first_seed(const char *folder, uint64_t from)
{
	uint64_t next = from ? from : next_read(folder);

	return next ? next : sweep_date() * 1000;
}

/* --- violations ------------------------------------------------------------------------------------------------------ */

static bool is_hang(const struct report *r)
{
	return strcmp(r->text, "it hangs") == 0;
}

static bool plan_keep(const struct plan *p, const struct report *r, const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		return false;
	fprintf(out, "# %s: %s\n", invariant_table[r->what].word, r->text);
	plan_write(p, out);
	return fclose(out) == 0;
}

/*
 * Prints the violations of one invariant and writes a plan of one. False: the plan cannot be written. A world that hangs is not shrunk: each step would take
 * HANG_SECONDS.
 */
static bool kind_print(const struct sweep_kind *k, const char *folder, bool shrinks)
{
	const struct report *r = &k->first;
	struct plan *p = malloc(sizeof(*p));
	char path[PATH_ROOM];
	bool kept;

	if (!p)
		abort();
	printf("%-4s %6" PRIu64 " times: %s\n     seeds", invariant_table[r->what].word, k->count, invariant_table[r->what].what);
	for (uint64_t i = 0; i < k->count && i < SWEEP_SEEDS_KEPT; i++)
		printf(" %" PRIu64, k->seed[i]);
	printf("%s\n     %s\n", k->count > SWEEP_SEEDS_KEPT ? " …" : "", r->text);
	plan_draw(p, r->seed);
	if (shrinks && !is_hang(r))
		plan_shrink(p, r->what, false);
	snprintf(path, sizeof(path), "%s/sweep/%s-%" PRIu64 ".plan", folder, invariant_table[r->what].word, r->seed);
	kept = plan_keep(p, r, path);
	printf("     build/sim --seed %" PRIu64 " --trace\n     build/sim --replay %s --trace (%u faults, %u jobs)\n", r->seed, path, p->faults,
	       p->jobs);
	free(p);
	return kept;
}

/* The most violated invariant that is not printed yet; NULL: all are. */
static struct sweep_kind *kind_next(struct sweep_result *r)
{
	struct sweep_kind *most = NULL;

	for (int i = 0; i < INVARIANT_N; i++)
		if (r->kind[i].count > 0 && (!most || r->kind[i].count > most->count))
			most = &r->kind[i];
	return most;
}

static bool violations_print(struct sweep_result *r, const char *folder)
{
	struct sweep_kind *k;
	char path[PATH_ROOM];
	bool kept = true;

	snprintf(path, sizeof(path), "%s/sweep", folder);
	if (r->failed && mkdir(path, 0777) && errno != EEXIST)
		return false;
	while ((k = kind_next(r))) {
		kept &= kind_print(k, folder, !r->interrupted);
		k->count = 0;
	}
	return kept;
}

int campaign_run(const char *folder, struct sweep *s)
{
	struct sweep_result *r = malloc(sizeof(*r));
	bool kept;
	int result;

	if (!r)
		abort();
	s->from = first_seed(folder, s->from);
	s->keep_going = true;
	printf("worlds from seed %" PRIu64 " on\n", s->from);
	sweep_run(s, r);
	kept = next_write(folder, r->next);
	sweep_print(r);
	printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " worlds, %" PRIu64 " of them violate an invariant\n", s->from, r->next - 1, r->seeds,
	       r->failed);
	result = r->failed > 0;
	kept &= violations_print(r, folder);
	if (!kept)
		fprintf(stderr, "sim: what was found cannot be written below %s\n", folder);
	free(r);
	return kept ? result : 2;
}
