/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All requests of the protocol at random, at daemons whose stores fail and that restart. REDLOCKD_SEED=n begins with story n instead of fresh ones, and
 * REDLOCKD_STORIES=n tells so many. A failure prints the story and its seed.
 */
#include "tests/fixture/random_verbs.h"

#include "daemon/base/segment.h"
#include "daemon/core/quorum.h"
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define STORIES_KNOWN 44 /* the same in each run */
#define STORIES_FRESH 15
#define STEPS         250

static int64_t answers[VERB_OTHER + 1][RESULT_N];

static void suite_stop(void)
{
	stories_close("random_verbs");
}

static void stores_change(void)
{
	if (restarts.bleak && one_in(6))
		store_forgets();
	else if (restarts.bleak && !cluster.daemon[1].service && one_in(12))
		clock_is_set();
	else if (one_in(3))
		stores_are_well();
	else if (one_in(3))
		some_are_served();
	else if (one_in(6))
		store_breaks();
	else
		store_changes();
}

static void story_goes_on(void)
{
	unsigned what = below(30);

	if (what < 4)
		passes(below(one_in(5) ? 6000 : 300) * MSEC);
	else if (what == 6 && !restarts.calm)
		stores_change();
	else if (what == 7)
		daemons_change();
	else
		speaker_acts();
	daemons_verify();
	speakers_hear();
	if (one_in(4))
		holds_are_shown();
	daemons_stop_if_drained();
	daemons_rest();
}

static void conf_is_chosen(void)
{
	struct core_conf *c = &cluster.conf;

	if (c->nodes == 1) {
		c->store = "memory";
		c->shared = false;
	}
	c->max_delay_us = 2 * SEC;
	c->clock_tol_us = clock_tol_us(c->nodes, c->max_lease_us, c->max_delay_us);
	c->max_grace_us = 50 * SEC;
	c->lease_us = (1 + below(10)) * SEC;
	c->names = one_in(2);
	c->inquires = one_in(2);
	c->users = one_in(5);
	c->audit = one_in(4);
	c->foreign = one_in(5);
	c->home_lost = (enum home_lost)below(3);
	c->window = one_in(3) ? 1 + below(3) : 0;
	c->listed = one_in(3) ? 2 : 0;
	c->limits.detached = one_in(4) ? 2 : 0;
	c->limits.waiting = one_in(4) ? 3 : 256;
	c->limits.locks = one_in(4) ? 4 : 1024;
	c->limits.jobs = one_in(4) ? 2 : 1000;
	c->limits.output = one_in(4) ? 65536 : 0;
}

static void story_begins(uint64_t seed)
{
	static const unsigned stores[] = {1, 1, 3, 3, 3, 5};
	bool two;

	story_of(seed);
	restarts = (struct restarts){0};
	rng_init(&restarts.rng, (uint64_t[]){seed, 29});
	restarts.calm = one_in(3);
	cluster_open(stores[below(6)]);
	conf_is_chosen();
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		node_is_born(i); /* the stores know the tolerance */
	two = cluster.conf.nodes > 1 && one_in(3);
	if (!two && one_in(3))
		cluster.conf.segment = segment_new("test", 11);
	restarts.bleak = cluster.conf.nodes > 1 && !restarts.calm && one_in(3);
	story("%u stores%s%s%s", cluster.conf.nodes, restarts.calm ? ", which stay well" : "", two ? ", two daemons" : "",
	      cluster.conf.segment ? ", in a segment" : "");
	daemon_starts(0);
	if (two)
		daemon_starts(1);
	passes(2 * SEC);
	speakers_open();
	daemons_open();
}

static void story_is_counted(void)
{
	for (unsigned d = 0; d < 2; d++)
		for (enum verb verb = 0; cluster.daemon[d].service && verb <= VERB_OTHER; verb++)
			for (enum result result = 0; result < RESULT_N; result++)
				answers[verb][result] += service_metrics(cluster.daemon[d].service)->answered[verb][result];
}

static void story_is_told(uint64_t seed)
{
	story_begins(seed);
	for (unsigned step = 0; step < STEPS; step++)
		story_goes_on();
	story_is_counted();
	daemons_are_left();
}

static void each_request_has_succeeded(void)
{
	for (enum verb verb = 0; verb < VERB_N; verb++)
		ck_assert_msg(answers[verb][RESULT_OK] > 0 || verb == VERB_QUIT, "request %d was never answered by OK", (int)verb);
}

START_TEST(known_stories_leave_nothing_behind)
{
	for (uint64_t seed = 1; seed <= STORIES_KNOWN; seed++)
		story_is_told(seed);
	each_request_has_succeeded();
	stories_end();
}
END_TEST

START_TEST(fresh_stories_leave_nothing_behind)
{
	uint64_t seed = seed_pick("random_verbs");
	const char *most = getenv("REDLOCKD_STORIES");
	unsigned stories = most ? (unsigned)strtoul(most, NULL, 10) : STORIES_FRESH;

	for (unsigned i = 0; i < stories; i++)
		story_is_told(seed + i);
	stories_end();
}
END_TEST

Suite *random_verbs_suite(void)
{
	Suite *s = suite_create("random_verbs");
	TCase *c = tcase_create("all requests at random");

	tcase_set_timeout(c, 120);
	tcase_add_unchecked_fixture(c, stories_open, suite_stop);
	tcase_add_test(c, known_stories_leave_nothing_behind);
	tcase_add_test(c, fresh_stories_leave_nothing_behind);
	suite_add_tcase(s, c);
	return s;
}
