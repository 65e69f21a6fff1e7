/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many lives of a daemon at random: it crashes and restarts while its clients are there or away, each time with another configuration; its journal fails, is written
 * again, is compacted or copied; its stores fail. REDLOCKD_SEED=n repeats a run. A failure shows the story of its lives and the seed that begins with them.
 */
#include "tests/unit/lives.h"

#include "tests/unit/seed.h"
#include "tests/unit/stage_part.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#define STORIES 1000
#define STEPS   250

struct lives lives;
struct met met;

/* In memory that the process that runs the tests shares: it tells after a crash, too. */
static struct {
	bool ended;
	uint64_t seed;
	size_t n;
	char text[1 << 20];
} * told;

unsigned below(unsigned bound)
{
	return (unsigned)rng_below(&lives.rng, bound);
}

bool one_in(unsigned many)
{
	return below(many) == 0;
}

void story(const char *format, ...)
{
	size_t room = sizeof(told->text) - told->n;
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(told->text + told->n, room, format, list);
	va_end(list);
	if ((size_t)n + 1 >= room)
		return;
	told->n += (size_t)n;
	told->text[told->n++] = '\n';
}

static void suite_start(void)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(told != MAP_FAILED);
}

static void suite_stop(void)
{
	if (!told->ended)
		printf("%.*slives: REDLOCKD_SEED=%llu begins with this story\n", (int)told->n, told->text,
		       (unsigned long long)told->seed);
	munmap(told, sizeof(*told));
}

/* --- the daemon --- */

/* What an operator may change between two lives. A new max_lease takes stores that have forgotten the old one: the inner one is told of it. */
static void conf_changes(void)
{
	struct core_conf *conf = &stage.conf;

	conf->lease_us = (1 + below(10)) * SEC;
	conf->min_lease_us = one_in(2) ? SEC : 100 * MSEC;
	conf->max_grace_us = one_in(5) ? 0 : one_in(3) ? 500 * MSEC : 100 * SEC;
	conf->limits.output = one_in(4) ? 65536 : 0;
	conf->timeout_us = (20 + below(100)) * MSEC;
	if (!lives.inner)
		return;
	conf->past_lease_us = conf->max_lease_us;
	conf->max_lease_us = (2 + below(one_in(2) ? 3 : 28)) * SEC;
	met.cuts += conf->max_lease_us < conf->past_lease_us;
	if (conf->lease_us > conf->max_lease_us)
		conf->lease_us = conf->max_lease_us;
	marker_is_set(0, "");
}

/* A journal that cannot be written is taken away: no life believes it. */
static void journal_is_taken_away(void)
{
	journal_mends(0);
	journal_loses_tail(0, journal_length(0));
	lives.journaled = true;
	clients_are_unsure();
	met.journals_lost++;
}

static void daemon_crashes(void)
{
	clients_hear();
	if (!lives.journaled)
		journal_is_taken_away();
	daemon_ends(0);
	clients_lose_daemon();
	conf_changes();
	passes((one_in(2) ? 1 : 1 + below(200)) * MSEC);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	if (one_in(2))
		journal_is_compacted(0);
	if (stage.conf.max_grace_us < 60 * SEC)
		clients_are_unsure();
	met.lives++;
}

static void daemon_lives_on(void)
{
	if (!one_in(2) || lives.sessions > SESSIONS_MOST)
		return;
	for (unsigned more = below(3) + 1; more > 0; more--) {
		daemon_crashes();
		story("  %lld ms: a new life: lease=%lldms max_lease=%lldms max_grace=%lldms timeout=%lldms",
		      (long long)(stage.now.us / MSEC), (long long)(stage.conf.lease_us / MSEC),
		      (long long)(stage.conf.max_lease_us / MSEC), (long long)(stage.conf.max_grace_us / MSEC),
		      (long long)(stage.conf.timeout_us / MSEC));
		if (more > 1 && one_in(2))
			passes(below(30) * MSEC);
	}
	passes(below(500) * MSEC);
}

/* Daemon 1 lives on a copy, beside daemon 0. Either may resume the same sessions. Nobody promises that their locks are kept, but they stay exclusive. */
static void journal_is_run_twice(void)
{
	if (lives.two || !lives.journaled)
		return;
	story("  %lld ms: daemon 1 lives on a copy of the journal", (long long)(stage.now.us / MSEC));
	journal_is_compacted(0);
	stage.daemon[0].stopped = one_in(2);
	lives_share_values();
	ck_assert_uint_eq(daemon_inherits(1, 0), 0);
	journal_is_compacted(0);
	lives.two = lives.copied = true;
	met.copies++;
	clients_are_unsure();
	clients_choose_daemon();
	passes(below(300) * MSEC);
	if (!stage.daemon[0].stopped)
		return;
	stage.daemon[0].stopped = false;
	wakes(0);
}

static void daemon_stands_still(void)
{
	story("  daemon 0 stands still");
	stage.daemon[0].stopped = true;
	passes(below(4000) * MSEC);
	stage.daemon[0].stopped = false;
	wakes(0);
}

static void journal_changes(void)
{
	if (!one_in(8)) {
		if (lives.journaled)
			journal_is_compacted(0);
		return;
	}
	story("  the journal %s", lives.journaled ? "fails" : "is written again");
	if (lives.journaled) {
		clients_are_unsure();
		journal_fails(0);
	} else {
		journal_mends(0);
	}
	lives.journaled = !lives.journaled;
}

/* --- the stores --- */

static void stores_are_well(void)
{
	story("  all stores are well");
	all_feel(MOOD_WELL);
	for (unsigned i = 0; i < stage.conf.nodes; i++)
		if (!stage.node[i].up)
			comes(i);
}

static void store_changes(void)
{
	static const enum mood moods[] = {MOOD_SILENT, MOOD_TARDY, MOOD_WELL, MOOD_WELL, MOOD_LOSSY};
	unsigned node = below(stage.conf.nodes), which = below(6);

	if (which == 5) {
		story("  store %u %s", node, stage.node[node].up ? "falls" : "comes");
		(stage.node[node].up ? falls : comes)(node);
		return;
	}
	story("  store %u is in mood %d", node, (int)moods[which]);
	feels(node, moods[which]);
	if (moods[which] == MOOD_WELL && !stage.node[node].up)
		comes(node);
}

static void store_breaks(void)
{
	unsigned node = below(stage.conf.nodes);

	if (!stage.node[node].up)
		return;
	story("  store %u breaks", node);
	breaks(node);
	if (one_in(2)) {
		passes(below(300) * MSEC);
		arrives(node);
	}
}

/* --- the story --- */

static void time_passes(void)
{
	passes(below(one_in(3) ? 3000 : 100) * MSEC);
}

static void something_rare_happens(void)
{
	if (lives.copying && one_in(3))
		journal_is_run_twice();
	else if (lives.calm)
		return;
	else if (one_in(6))
		daemon_stands_still();
	else if (one_in(4))
		store_breaks();
	else if (one_in(2))
		stores_are_well();
}

static void client_does_something(void)
{
	static void (*const deed[])(struct client *, unsigned, unsigned) = {
		client_locks,   client_locks,   client_locks,   client_locks,   client_locks,    client_locks,
		client_unlocks, client_unlocks, client_unlocks, client_extends, client_extends,  client_checks,
		client_comes,   client_comes,   client_goes,    client_goes,    client_gives_up,
	};
	struct client *c = &lives.client[below(CLIENTS)];
	unsigned name = below(NAMES), owner = below(OWNERS);

	deed[below(sizeof(deed) / sizeof(deed[0]))](c, name, owner);
}

static void story_goes_on(void)
{
	switch (below(24)) {
	case 0:
	case 1:
		time_passes();
		break;
	case 2:
		daemon_lives_on();
		break;
	case 3:
		journal_changes();
		break;
	case 4:
	case 5:
		if (!lives.calm)
			store_changes();
		break;
	case 6:
		something_rare_happens();
		break;
	default:
		client_does_something();
		break;
	}
	clients_hear();
}

static void story_begins(uint64_t seed)
{
	unsigned stores, kind;

	told->n = 0;
	told->seed = seed;
	lives = (struct lives){.journaled = true};
	rng_init(&lives.rng, (uint64_t[]){seed, 11});
	kind = below(4);
	lives.inner = kind == 0;
	lives.two = kind == 1;
	lives.copying = kind == 2;
	lives.calm = one_in(2);
	stores = lives.inner ? 1 : !one_in(4) ? 3 : one_in(2) ? 5 : 1;
	story("%u stores%s%s", stores, lives.calm ? ", which stay well" : "", lives.two ? ", two daemons" : "");
	stage_open(stores);
	stage.conf.max_delay_us = one_in(2) ? 2 * SEC : 0;
	for (unsigned d = 0; d <= lives.two; d++)
		daemon_starts(d);
	passes(2 * SEC);
}

static void story_ends(void)
{
	if (!lives.journaled)
		journal_mends(0);
	for (unsigned k = 0; k < STAGE_SESSIONS; k++)
		promise_end(k, true);
	story("  all go");
	stage_close();
}

START_TEST(no_promise_is_broken_in_many_lives)
{
	uint64_t seed = seed_pick("lives");

	for (unsigned i = 0; i < STORIES; i++) {
		story_begins(seed + i);
		for (unsigned step = 0; step < STEPS && lives.sessions < SESSIONS_MOST; step++)
			story_goes_on();
		story_ends();
	}
	told->ended = true;
	printf("lives: %u lives, %u rows of RESUME, %u cuts of max_lease, %u copies and %u losses of a journal\n", met.lives,
	       met.rows, met.cuts, met.copies, met.journals_lost);
	ck_assert(met.lives && met.rows && met.cuts && met.copies && met.journals_lost);
}
END_TEST

Suite *lives_suite(void)
{
	Suite *s = suite_create("lives");
	TCase *c = tcase_create("many lives at random");

	tcase_set_timeout(c, 120);
	tcase_add_unchecked_fixture(c, suite_start, suite_stop);
	tcase_add_test(c, no_promise_is_broken_in_many_lives);
	suite_add_tcase(s, c);
	return s;
}
