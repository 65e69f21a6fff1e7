/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon of lives_test.c, and its journal: how its lives end and begin. */
#include "tests/unit/lives.h"

#include "tests/unit/stage_part.h"

#include <check.h>

#define RUSH 12 /* steps */

/* What an operator may change between two lives. A new max_lease takes stores that have forgotten the old one: the inner one is told of it. */
static void conf_changes(void)
{
	struct core_conf *conf = &stage.conf;

	conf->lease_us = (1 + below(10)) * SEC;
	conf->min_lease_us = one_in(2) ? SEC : 100 * MSEC;
	conf->max_grace_us = one_in(5) ? 0 : one_in(3) ? 500 * MSEC : 100 * SEC;
	conf->limits.output = one_in(4) ? 65536 : 0;
	conf->timeout_us = (20 + below(100)) * MSEC;
	conf->window = lives.windowed ? 1 + below(3) : 0;
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

/* So long that leases end, and others take what is free, or for a moment. */
static void daemon_is_away(void)
{
	if (!one_in(4)) {
		passes((one_in(2) ? 1 : 1 + below(200)) * MSEC);
		return;
	}
	clients_are_unsure();
	passes((1 + below(12)) * SEC);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_locks(&lives.client[i], below(NAMES), below(OWNERS));
	clients_hear();
}

/* Stores that are well answer nothing but what is needed to join them. */
static void stores_fall_silent(void)
{
	for (unsigned i = 0; i < stage.conf.nodes; i++)
		if (stage.node[i].up && stage.node[i].mood == MOOD_WELL)
			feels(i, MOOD_SILENT);
	lives.rush = RUSH;
}

static void stores_are_joined(void)
{
	for (unsigned i = 0; i < stage.conf.nodes; i++)
		if (stage.node[i].up && stage.node[i].mood == MOOD_SILENT && waiting_at(i))
			serves(i, 1);
	passes(0);
}

static void daemon_crashes(void)
{
	bool silent = !lives.calm && one_in(2);

	clients_hear();
	if (!lives.journaled)
		journal_is_taken_away();
	daemon_ends(0);
	clients_lose_daemon();
	conf_changes();
	daemon_is_away();
	if (silent)
		stores_fall_silent();
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	if (silent)
		stores_are_joined();
	if (one_in(2))
		journal_is_compacted(0);
	if (stage.conf.max_grace_us < 60 * SEC)
		clients_are_unsure();
	met.lives++;
}

/* In order: it tells those who wait, and ends. */
static void daemon_stops(void)
{
	struct event stop = {.kind = EVENT_STOP};

	if (lives.sessions > SESSIONS_MOST)
		return;
	story("  %lld ms: daemon 0 is told to stop", (long long)(stage.now.us / MSEC));
	clients_hear();
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	clients_hear();
	clients_lose_daemon();
	passes(below(700) * MSEC); /* as long as the last lines may take to go out */
	daemon_crashes();
}

static void daemon_reloads(void)
{
	struct core_conf conf = stage.daemon[0].conf;

	conf.lease_us = (1 + below(2)) * SEC;
	conf.min_lease_us = one_in(2) ? SEC : 100 * MSEC;
	conf.limits.output = one_in(4) ? 65536 : 0;
	story("  daemon 0 loads its configuration anew: lease=%lldms", (long long)(conf.lease_us / MSEC));
	service_reload(stage.daemon[0].service, &conf);
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
void journal_is_run_twice(void)
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

void daemon_stands_still(void)
{
	int64_t us = below(4000) * MSEC;

	story("  daemon 0 stands still");
	stage.daemon[0].stopped = true;
	passes(us);
	dues_move(us);
	stage.daemon[0].stopped = false;
	wakes(0);
}

void journal_changes(void)
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

void daemon_changes(void)
{
	if (one_in(4))
		daemon_stops();
	else if (one_in(4))
		daemon_reloads();
	else
		daemon_lives_on();
}
