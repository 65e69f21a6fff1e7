/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs variations of plans: of each plan the variations from number `from` on, in turns. The sweep knows each by one number: the number of the variation times
 * how many plans there are, plus the number of the plan. A variation that violates an invariant is written to a file for --replay.
 */
#include "tests/sim/sweep/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_ROOM 512

static const struct variations *variations_of(const struct sweep *s)
{
	return s->of;
}

static void variation_plan(const struct sweep *s, uint64_t key, struct plan *ret_plan)
{
	const struct variations *v = variations_of(s);

	*ret_plan = v->plan[key % v->plans];
	plan_vary(ret_plan, key / v->plans);
}

/* The name of the plan's file without its folder and ".plan", or the seed. */
static int base_of(const char *name, const char **ret_base)
{
	const char *slash = strpbrk(name, "/ ") ? strrchr(name, strchr(name, '/') ? '/' : ' ') : NULL;
	size_t length;

	*ret_base = slash ? slash + 1 : name;
	length = strlen(*ret_base);
	if (length > 5 && !strcmp(*ret_base + length - 5, ".plan"))
		length -= 5;
	return (int)length;
}

static void variation_path(const struct variations *v, const struct report *r, char *out)
{
	const char *base;
	int length = base_of(v->name[r->seed % v->plans], &base);

	snprintf(out, PATH_ROOM, "%s/%s-%.*s-%" PRIu64 ".plan", v->folder, invariant_table[r->what].word, length, base, r->seed / v->plans);
}

static void plan_keep(const struct variations *v, const struct report *r, const struct plan *p, const char *path)
{
	FILE *out;

	if (mkdir(v->folder, 0777) && errno != EEXIST)
		fprintf(stderr, "sim: %s: %s\n", v->folder, strerror(errno));
	out = fopen(path, "w");
	if (!out) {
		fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
		return;
	}
	fprintf(out, "# %s: %s\n# variation %" PRIu64 " of %s\n", invariant_table[r->what].word, r->text, r->seed / v->plans,
		v->name[r->seed % v->plans]);
	plan_write(p, out);
	fclose(out);
}

static void variation_found(const struct sweep *s, const struct report *r)
{
	const struct variations *v = variations_of(s);
	struct plan *p = malloc(sizeof(*p));
	char path[PATH_ROOM];

	if (!p)
		abort();
	variation_plan(s, r->seed, p);
	variation_path(v, r, path);
	plan_keep(v, r, p, path);
	if (s->keep_going)
		printf("%s: %s (build/sim --replay %s --trace)\n", invariant_table[r->what].word, r->text, path);
	free(p);
}

static void kinds_print(const struct sweep_result *r)
{
	for (int i = 0; i < INVARIANT_N; i++)
		if (r->kind[i].count)
			printf("%-4s %6" PRIu64 " times: %s\n", invariant_table[i].word, r->kind[i].count, invariant_table[i].what);
}

int variations_run(const struct variations *v, struct sweep *s)
{
	struct sweep_result *r = malloc(sizeof(*r));
	struct plan *p = malloc(sizeof(*p));
	char path[PATH_ROOM], replay[PATH_ROOM + 40];
	uint64_t failed;

	if (!r || !p)
		abort();
	printf("variations of %u plans from number %" PRIu64 " on\n", v->plans, s->from);
	s->from *= v->plans;
	s->count = s->count > UINT64_MAX / 2 / v->plans ? UINT64_MAX / 2 : s->count * v->plans;
	s->of = v;
	s->draw = variation_plan;
	s->found = variation_found;
	sweep_run(s, r);
	sweep_print(r);
	kinds_print(r);
	failed = r->failed;
	if (failed) {
		printf("%" PRIu64 " of %" PRIu64 " variations violate an invariant\n", failed, r->seeds);
		variation_plan(s, r->first.seed, p);
		variation_path(v, &r->first, path);
		r->first.seed = (uint64_t)p->seed;
		snprintf(replay, sizeof(replay), "build/sim --replay %s --trace", path);
		violation_print(p, &r->first, replay);
	}
	free(p);
	free(r);
	return failed > 0;
}
