/* SPDX-License-Identifier: BSD-2-Clause */
/* sim, the simulator: its command line. README.md in this folder says how the parts fit together. */
#include "tests/sim/sweep/sweep.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CORPUS    "tests/sim/corpus"
#define VARY_MOST 1000
#define SEED_WORD "seed "

enum what { RUN_SEEDS, RUN_SWEEP, RUN_ONE, RUN_FILE, RUN_VARY, RUN_SELFTEST, RUN_INVARIANTS };

struct options {
	enum what what;
	uint64_t seed, count, from;
	unsigned jobs; /* 0: not given */
	double minutes;
	const char *only;
	bool has_from, has_count, trace, shrink, keep_going, plan;
	const char *file, *folder;
	char scenario[256];
	const char *vary[VARY_MOST]; /* files, and seeds as "seed N" */
	unsigned vary_count;
};

static const struct option long_options[] = {
	{"seed", required_argument, NULL, 's'},   {"seeds", required_argument, NULL, 'n'},
	{"from", required_argument, NULL, 'f'},   {"jobs", required_argument, NULL, 'j'},
	{"trace", no_argument, NULL, 't'},        {"scenario", required_argument, NULL, 'c'},
	{"replay", required_argument, NULL, 'r'}, {"shrink", no_argument, NULL, 'k'},
	{"sweep", required_argument, NULL, 'w'},  {"minutes", required_argument, NULL, 'm'},
	{"keep-going", no_argument, NULL, 'g'},   {"self-test", no_argument, NULL, 'T'},
	{"invariants", no_argument, NULL, 'I'},   {"only", required_argument, NULL, 'o'},
	{"vary", required_argument, NULL, 'v'},   {"vary-seed", required_argument, NULL, 'V'},
	{"into", required_argument, NULL, 'i'},
	{"plan", no_argument, NULL, 'p'},         {"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void usage(void)
{
	puts("sim --seeds N [--from M] [--jobs J] [--keep-going]  run the worlds of the seeds M, M+1 …\n"
	     "    --only hour|crowd|busy|brief|storm|throng|servers|even|terms|reloads|bounds|sets|rolls|priorities|breaks|readers|circles|gathers|\n"
	     "           rates|permits|chores|notes|inquires|memory|cuts|meets|owners|rules|slices\n"
	     "                  only those of this kind\n"
	     "sim --sweep FOLDER [--minutes M] [--seeds N] [--from M] [--jobs J] [--only …]  run as many as fit, from the seed in FOLDER/sweep.next on;\n"
	     "                                print violations by invariant, leave a small plan of each in FOLDER/sweep\n"
	     "sim --vary FILE [--seeds N] [--from M] [--jobs J] [--minutes M] [--keep-going] [--into FOLDER] [FILE …]\n"
	     "                                run N variations of each plan, those of the numbers M, M+1 …, and leave the plan of each violation in\n"
	     "                                FOLDER (build/vary); --vary-seed S: of the plan of this seed\n"
	     "sim --seed N [--trace]           run one world; --shrink: make it smaller while it fails\n"
	     "sim --seed N --plan              print its plan, as a file for --replay\n"
	     "sim --replay FILE [--trace]      run the world of a file\n"
	     "sim --scenario NAME [--trace]    run the world of " CORPUS "/NAME.plan\n"
	     "sim --self-test                  test the simulator itself\n"
	     "sim --invariants                 list the invariants, and why some are not checked yet");
}

static bool vary_add(struct options *o, const char *name)
{
	o->what = RUN_VARY;
	if (!name || o->vary_count == VARY_MOST)
		return false;
	o->vary[o->vary_count++] = name;
	return true;
}

/* What to run. */
static bool option_take_what(struct options *o, int c)
{
	switch (c) {
	case 's':
		o->what = RUN_ONE;
		o->seed = strtoull(optarg, NULL, 10);
		return true;
	case 'w':
		o->what = RUN_SWEEP;
		o->folder = optarg;
		return true;
	case 'v':
		return vary_add(o, optarg);
	case 'V':
		snprintf(o->scenario, sizeof(o->scenario), SEED_WORD "%s", optarg);
		return vary_add(o, strdup(o->scenario));
	case 'c':
		o->what = RUN_FILE;
		snprintf(o->scenario, sizeof(o->scenario), "%s/%s.plan", CORPUS, optarg);
		o->file = o->scenario;
		return true;
	case 'r':
		o->what = RUN_FILE;
		o->file = optarg;
		return true;
	case 'T':
		o->what = RUN_SELFTEST;
		return true;
	case 'I':
		o->what = RUN_INVARIANTS;
		return true;
	default:
		return false;
	}
}

static bool option_take(struct options *o, int c)
{
	switch (c) {
	case 'n':
		o->count = strtoull(optarg, NULL, 10);
		return o->has_count = true;
	case 'f':
		o->from = strtoull(optarg, NULL, 10);
		return o->has_from = true;
	case 'j':
		o->jobs = (unsigned)strtoul(optarg, NULL, 10);
		return o->jobs >= 1 && o->jobs <= SWEEP_JOBS_MAX;
	case 'm':
		o->minutes = strtod(optarg, NULL);
		return o->minutes > 0;
	case 'o':
		o->only = optarg;
		return kind_is_known(optarg);
	case 't':
		return o->trace = true;
	case 'k':
		return o->shrink = true;
	case 'g':
		return o->keep_going = true;
	case 'p':
		return o->plan = true;
	case 'i':
		o->folder = optarg;
		return true;
	default:
		return option_take_what(o, c);
	}
}

static struct plan *plan_new(void)
{
	struct plan *p = malloc(sizeof(*p));

	if (!p)
		abort();
	return p;
}

/* Runs one world. Returns 0, 1 after a violation, 2 when a file cannot be written. */
static int run_plan(const struct options *o, struct plan *p, const char *replay)
{
	struct report r;
	char shrunk[64];
	FILE *out;

	if (o->trace) {
		report_of(p, stdout, &r);
		printf("hash %016llx\n", (unsigned long long)r.hash);
		return r.what != INVARIANT_NONE;
	}
	report_of_child(p, &r);
	if (r.what == INVARIANT_NONE)
		return 0;
	violation_print(p, &r, replay);
	if (!o->shrink)
		return 1;
	plan_shrink(p, r.what, true);
	snprintf(shrunk, sizeof(shrunk), "%s-%llu.plan", invariant_table[r.what].word, (unsigned long long)r.seed);
	out = fopen(shrunk, "w");
	if (!out)
		return 2;
	fprintf(out, "# %s: %s\n", invariant_table[r.what].word, r.text);
	plan_write(p, out);
	fclose(out);
	printf("smaller: build/sim --replay %s\n", shrunk);
	return 1;
}

static int run_one(const struct options *o)
{
	struct plan *p = plan_new();
	char replay[64];
	int result;

	snprintf(replay, sizeof(replay), "build/sim --seed %llu --trace", (unsigned long long)o->seed);
	plan_draw(p, o->seed);
	if (o->plan)
		plan_write(p, stdout);
	result = o->plan ? 0 : run_plan(o, p, replay);
	free(p);
	return result;
}

static bool plan_of_file(const char *name, struct plan *ret_plan)
{
	FILE *in = fopen(name, "r");
	int line = in ? plan_read(ret_plan, in) : -1;

	if (in)
		fclose(in);
	if (line)
		fprintf(stderr, "sim: %s:%d: %s\n", name, line, in ? "not a line of a plan" : "cannot be read");
	return line == 0;
}

static int run_file(const struct options *o)
{
	struct plan *p = plan_new();
	char replay[320];
	int result = 2;

	snprintf(replay, sizeof(replay), "build/sim --replay %s --trace", o->file);
	if (plan_of_file(o->file, p))
		result = run_plan(o, p, replay);
	free(p);
	return result;
}

static int run_seeds(const struct options *o)
{
	struct sweep s = {.from = o->from, .count = o->count, .jobs = o->jobs ? o->jobs : 2, .keep_going = o->keep_going, .only = o->only};
	static struct sweep_result r;
	struct plan *p;
	char replay[64];

	sweep_run(&s, &r);
	sweep_print(&r);
	if (!r.failed)
		return 0;
	printf("%llu seeds failed\n", (unsigned long long)r.failed);
	p = plan_new();
	plan_draw(p, r.first.seed);
	snprintf(replay, sizeof(replay), "build/sim --seed %llu --trace", (unsigned long long)r.first.seed);
	violation_print(p, &r.first, replay);
	free(p);
	return 1;
}

/* Runs for ten minutes unless a number of worlds or minutes is given. */
static int run_sweep(const struct options *o)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct sweep s = {.from = o->has_from ? o->from : 0, .count = o->has_count ? o->count : UINT64_MAX, .jobs = o->jobs, .talk = true, .only = o->only};

	if (s.jobs == 0)
		s.jobs = processors < 1 ? 1 : processors > SWEEP_JOBS_MAX ? SWEEP_JOBS_MAX : (unsigned)processors;
	if (o->minutes > 0 || !o->has_count)
		s.seconds = 60 * (o->minutes > 0 ? o->minutes : 10);
	return campaign_run(o->folder, &s);
}

static int run_variations(const struct options *o)
{
	struct sweep s = {.from = o->from, .count = o->has_count || !(o->minutes > 0) ? o->count : UINT64_MAX, .jobs = o->jobs ? o->jobs : 2};
	struct plan *plan = calloc(o->vary_count, sizeof(*plan));
	struct variations v = {.plan = plan, .name = o->vary, .plans = o->vary_count, .folder = o->folder ? o->folder : "build/vary"};
	bool read = true;
	int result = 2;

	if (!plan)
		abort();
	s.keep_going = o->keep_going;
	s.talk = s.keep_going;
	s.seconds = 60 * o->minutes;
	for (unsigned i = 0; i < v.plans; i++) {
		if (!strncmp(v.name[i], SEED_WORD, strlen(SEED_WORD)))
			plan_draw(&plan[i], strtoull(v.name[i] + strlen(SEED_WORD), NULL, 10));
		else
			read &= plan_of_file(v.name[i], &plan[i]);
	}
	if (read)
		result = variations_run(&v, &s);
	free(plan);
	return result;
}

static int list_invariants(void)
{
	for (int i = 1; i < INVARIANT_N; i++)
		printf("%-4s %s %-8s %s\n", invariant_table[i].word, invariant_table[i].class == CLASS_T ? "T" : "X",
		       invariant_table[i].checked ? "checked" : "not yet", invariant_table[i].what);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.count = 100, .from = 1};
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (!option_take(&o, c)) {
			usage();
			return c == 'h' ? 0 : 2;
		}
	}
	while (o.what == RUN_VARY && optind < argc)
		if (!vary_add(&o, argv[optind++]))
			return 2;
	switch (o.what) {
	case RUN_VARY:
		return run_variations(&o);
	case RUN_SEEDS:
		return run_seeds(&o);
	case RUN_SWEEP:
		return run_sweep(&o);
	case RUN_ONE:
		return run_one(&o);
	case RUN_FILE:
		return run_file(&o);
	case RUN_SELFTEST:
		return selftest_run() > 0;
	case RUN_INVARIANTS:
		return list_invariants();
	}
	return 2;
}
