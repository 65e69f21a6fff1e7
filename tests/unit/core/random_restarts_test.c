/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon at random: it crashes and restarts while its clients are connected or away, each time with another configuration. It is told to stop, or to
 * load its configuration. Its journal fails, recovers, is compacted or copied. Its stores fail, or answer some of their calls. REDLOCKD_SEED=n repeats
 * it. A failure prints the story and the seed that begins with it.
 */
#include "tests/fixture/random_clients.h"

#include "tests/fixture/seed.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

#define STORIES 1000
#define STEPS   250

static void suite_stop(void)
{
	stories_close("random_restarts");
}

static void time_passes(void)
{
	passes(below(one_in(3) ? 3000 : 100) * MSEC);
}

static void something_rare_happens(void)
{
	if (restarts.copying && one_in(3))
		journal_is_run_twice();
	else if (restarts.calm)
		return;
	else if (one_in(8))
		nobody_waits_in_vain();
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
		client_cancels, client_cancels, client_half_closes, client_says_hello, client_looks,
		client_breaks, client_kills, client_watches,
	};
	struct client *c = &restarts.client[below(CLIENTS)];
	unsigned name = below(NAMES), owner = below(OWNERS);

	deed[below(sizeof(deed) / sizeof(deed[0]))](c, name, owner);
}

static void rush_goes_on(void)
{
	static void (*const deed[])(struct client *, unsigned, unsigned) = {
		client_comes,  client_comes,   client_comes,   client_locks, client_locks,  client_locks,
		client_checks, client_extends, client_unlocks, client_goes,  client_cancels, client_half_closes,
	};

	if (--restarts.rush == 0 && one_in(2))
		stores_are_well();
	else if (one_in(4))
		some_are_served();
	else
		deed[below(sizeof(deed) / sizeof(deed[0]))](&restarts.client[below(CLIENTS)], below(NAMES), below(OWNERS));
}

static void story_goes_on(void)
{
	switch (restarts.rush ? 26 : below(26)) {
	case 26:
		rush_goes_on();
		break;
	case 0:
	case 1:
		time_passes();
		break;
	case 2:
		daemon_changes();
		break;
	case 3:
		journal_changes();
		break;
	case 4:
	case 5:
		if (!restarts.calm)
			store_changes();
		break;
	case 6:
		something_rare_happens();
		break;
	case 7:
	case 8:
		some_are_served();
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

	story_of(seed);
	restarts = (struct restarts){.journaled = true};
	dues_open();
	rng_init(&restarts.rng, (uint64_t[]){seed, 11});
	kind = below(4);
	restarts.inner = kind == 0;
	restarts.two = kind == 1;
	restarts.copying = kind == 2;
	restarts.calm = one_in(2);
	restarts.windowed = one_in(3);
	restarts.forced = one_in(3);
	stores = restarts.inner ? 1 : !one_in(4) ? 3 : one_in(2) ? 5 : 1;
	story("%u stores%s%s", stores, restarts.calm ? ", which stay well" : "", restarts.two ? ", two daemons" : "");
	cluster_open(stores);
	cluster.conf.max_delay_us = one_in(2) ? 2 * SEC : 0;
	cluster.conf.window = restarts.windowed ? 1 + below(3) : 0;
	for (unsigned d = 0; d <= restarts.two; d++)
		daemon_starts(d);
	passes(2 * SEC);
}

static void story_ends(void)
{
	if (!restarts.journaled)
		journal_mends(0);
	for (unsigned k = 0; k < CLUSTER_SESSIONS; k++)
		promise_end(k, true);
	story("  all go");
	cluster_close();
}

START_TEST(no_promise_is_broken_in_many_runs)
{
	uint64_t seed = seed_pick("random_restarts");

	for (unsigned i = 0; i < STORIES; i++) {
		story_begins(seed + i);
		for (unsigned step = 0; step < STEPS && restarts.sessions < SESSIONS_MOST; step++)
			story_goes_on();
		story_ends();
	}
	stories_end();
	printf("random_restarts: %u runs, %u rows of RESUME, %u cuts of max_lease, %u copies and %u losses of a journal, %u locks broken, %u sessions killed\n",
	       met.runs, met.rows, met.cuts, met.copies, met.journals_lost, met.breaks, met.kills);
	ck_assert(met.runs && met.rows && met.cuts && met.copies && met.journals_lost && met.breaks && met.kills);
}
END_TEST

Suite *random_restarts_suite(void)
{
	Suite *s = suite_create("random_restarts");
	TCase *c = tcase_create("many runs at random");

	tcase_set_timeout(c, 120);
	tcase_add_unchecked_fixture(c, stories_open, suite_stop);
	tcase_add_test(c, no_promise_is_broken_in_many_runs);
	suite_add_tcase(s, c);
	return s;
}
