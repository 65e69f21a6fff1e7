/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/service/service.c: the order of a step, stopping, events about nobody, determinism. */
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

static struct effects effects;

static int told(struct event event)
{
	int r;

	effects_init(&effects);
	event.now = cluster.now;
	r = service_step(cluster.daemon[0].service, &event, &effects);
	ck_assert_uint_eq(effects.count, 0);
	effects_release(&effects);
	return r;
}

FIXTURE(.teardown = cluster_close)

TEST(an_event_about_nobody_is_refused)
{
	static char ping[] = "PING";
	static const struct peer peer = {.is_unix = true};

	cluster_begin(3);
	ck_assert_int_eq(told((struct event){.kind = EVENT_LINE, .session = {.id = 5, .line = ping, .n = 4}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_TOO_LONG, .session = {.id = 5}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_EOF, .session = {.id = 5}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_SENT, .session = {.id = 5}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_GONE, .session = {.id = 5, .how = GONE_HANGUP}}), -EINVAL);
	session_opens(1, 0);
	ck_assert_int_eq(told((struct event){.kind = EVENT_OPEN, .session = {.id = 1, .peer = &peer}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_SENT, .session = {.id = 1}}), -EINVAL); /* it was not asked for */
	ck_assert_int_eq(told((struct event){.kind = EVENT_LINE, .session = {.id = UINT64_C(1) << 32 | 1, .line = ping, .n = 4}}),
			 -EINVAL);
}

TEST(an_event_about_no_store_or_no_call_is_refused)
{
	cluster_begin(3);
	ck_assert_int_eq(told((struct event){.kind = EVENT_NODE_UP, .node = {.index = 3}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_NODE_DOWN, .node = {.index = 3}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_SUBSCRIBED, .node = {.index = 3}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_ANSWER, .answer = {.call = 0, .node = 3}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_ANSWER, .answer = {.call = 12345, .node = 0}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_ANSWER, .answer = {.call = 0, .node = 0}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_ANSWER, .answer = {.call = UINT64_C(1) << 63, .node = 0}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_ANSWER, .answer = {.call = UINT64_MAX, .node = 0}}), -EINVAL);
	ck_assert_int_eq(told((struct event){.kind = EVENT_LINE, .session = {.id = UINT64_MAX}}), -EINVAL);
}

TEST(stopping_tells_those_who_wait_hangs_up_and_deletes_nothing)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	says(3, "@x LOCK a wait=1m");
	says(3, "@y LOCK b");
	hears(3, "@y OK *");
	stop.now = cluster.now;
	effects_init(&effects);
	ck_assert_int_eq(service_step(cluster.daemon[0].service, &stop, &effects), 0);
	ck_assert_uint_eq(effects.count, 5);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(effects.item[i].kind, EFFECT_SEND);
		ck_assert_ptr_nonnull(memmem(effects.item[i].send.bytes.p, effects.item[i].send.bytes.n, "ERR DRAINING", 12));
	}
	for (unsigned i = 2; i < 5; i++)
		ck_assert_int_eq(effects.item[i].kind, EFFECT_HANGUP);
	effects_release(&effects);
	daemon_ends(0);
	ck_assert_uint_eq(asked(CALL_RELEASE), 0);
	ck_assert(key_is_there(0, "a") && key_is_there(0, "b"));
}

/* Nobody listens to the session any more. Its client may believe until the deadline. */
TEST(a_heartbeat_that_is_missing_after_the_stop_costs_no_lock)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(3);
	says(1, "HELLO 1 heartbeat=100ms");
	hears(1, "OK proto=1 *");
	says(1, "LOCK a");
	hears(1, GRANT);
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	ck_assert(hung_up(1));
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 0);
	ck_assert(!was_logged("lost *"));
	daemon_ends(0);
	ck_assert(key_is_there(0, "a"));
}

/* A call that is carried out is answered. */
TEST(a_request_behind_one_that_a_stop_refuses_is_answered)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "LOCK b wait=1m");
	says(1, "UNLOCK a");
	says(1, "LOCK c");
	says(1, "LOCKALL c d");
	hears_nothing(1);
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears(1, "ERR DRAINING *");
	hears(1, "OK name=a count=0");
	hears(1, "ERR DRAINING *");
	hears(1, "ERR DRAINING *");
	ck_assert(hung_up(1));
	ignores(2);
	daemon_ends(0);
}

/* However many they are. */
TEST(all_lines_that_were_read_ahead_are_served_when_the_daemon_stops)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(1);
	says(9, "LOCK busy");
	hears(9, "OK *");
	for (unsigned k = 1; k <= 3; k++) {
		for (unsigned i = 0; i < 50; i++) {
			says(k, "LOCK l%u/%u", k, i);
			hears(k, "OK *");
		}
		says(k, "LOCK busy wait=1m");
		for (unsigned i = 0; i < 50; i++)
			says(k, "UNLOCK l%u/%u", k, i);
	}
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	for (unsigned k = 1; k <= 3; k++) {
		hears(k, "ERR DRAINING *");
		for (unsigned i = 0; i < 50; i++)
			hears(k, "OK name=l* count=0");
		ck_assert(hung_up(k));
	}
	daemon_ends(0);
}

TEST(an_UNLOCK_that_waits_for_the_stores_is_answered_when_the_daemon_stops)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK b");
	hears(2, "OK *");
	all_feel(MOOD_SILENT);
	says(1, "LOCK b wait=1m");
	says(1, "UNLOCK a sync=yes");
	says(1, "CHECK a");
	says(2, "UNLOCK b sync=yes");
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears(1, "ERR DRAINING *");
	hears(1, "ERR QUORUM *");
	hears(1, "ERR NOTHELD *");
	hears(2, "ERR QUORUM *");
	ck_assert(hung_up(1));
	daemon_ends(0);
}

TEST(a_request_that_the_stores_have_not_answered_is_answered_when_the_daemon_stops)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	all_feel(MOOD_SILENT);
	says(1, "EXTEND a");
	says(1, "SHOW b");
	says(1, "UNLOCK a");
	says(2, "@s SHOW c");
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears(1, "ERR DRAINING *");
	hears(1, "ERR DRAINING *");
	hears(1, "OK name=a count=0");
	hears(2, "@s ERR DRAINING *");
	ck_assert(hung_up(1) && hung_up(2));
	all_feel(MOOD_WELL);
	passes(SEC);
	hears_nothing(1);
	hears_nothing(2);
	daemon_ends(0);
}

TEST(a_daemon_that_is_killed_in_the_middle_of_everything_frees_all_memory)
{
	cluster_begin(3);
	says(1, "LOCK a");
	says(1, "LOCK b");
	says(1, "LOCK c");
	says(2, "LOCK a wait=1m");
	says(3, "HELLO 1 name=waiter heartbeat=1m");
	says(3, "@w LOCK a wait=1m owner=o note=n");
	says(4, "LOCK c renew=no ttl=100ms");
	passes(SEC);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	says(1, "@e EXTEND a");
	says(1, "@s UNLOCK b sync=yes");
	says(5, "LOCK d");
	says(5, "PING");
	daemon_ends(0);
}

TEST(a_lease_survives_the_death_of_its_daemon_until_it_expires)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	daemon_ends(0);
	says(2, "LOCK a wait=1m");
	passes(9900 * MSEC);
	hears_nothing(2);
	passes(1200 * MSEC);
	hears(2, GRANT);
}

TEST(a_new_setting_of_the_lease_counts_for_later_locks)
{
	struct core_conf conf;

	cluster_begin(1);
	conf = cluster.daemon[0].conf;
	conf.lease_us = 5 * SEC;
	conf.limits.locks = 1;
	service_reload(cluster.daemon[0].service, &conf);
	says(1, "LOCK a");
	hears(1, "OK name=a fence=* ttl_ms=5000 count=1");
	says(1, "LOCK b");
	hears(1, "ERR LIMIT *");
}

TEST(a_new_setting_of_the_shortest_lease_counts_for_later_requests)
{
	struct core_conf conf;

	cluster_begin(1);
	conf = cluster.daemon[0].conf;
	conf.min_lease_us = 2 * SEC;
	service_reload(cluster.daemon[0].service, &conf);
	says(1, "LOCK a ttl=1999ms");
	hears(1, "ERR LIMIT * 2000ms (min_lease) *");
	says(1, "LOCK a ttl=99999999999999999999h");
	hears(1, "ERR LIMIT ttl must be from 2000ms (min_lease) to *ms (max_lease)");
	says(1, "LOCK a ttl=2s");
	hears(1, "OK name=a *");
}

TEST(the_supervisor_hears_the_state_of_the_daemon)
{
	char text[64], tiny[4];

	cluster_open(3);
	cluster.node[2].up = false;
	daemon_starts(0);
	ck_assert(!service_stores_checked(cluster.daemon[0].service));
	passes(2 * SEC);
	falls(2);
	ck_assert(service_stores_checked(cluster.daemon[0].service));
	says(1, "LOCK a");
	hears(1, GRANT);
	service_status(cluster.daemon[0].service, text, sizeof(text));
	ck_assert_str_eq(text, "2/3 stores, 1 sessions, 1 locks, 0 waiters");
	ck_assert_uint_eq(service_status(cluster.daemon[0].service, tiny, sizeof(tiny)), 3);
	ck_assert_str_eq(tiny, "2/3");
}

static uint64_t story(void)
{
	uint64_t sum = 14695981039346656037u;
	const char *line;

	cluster_begin(3);
	says(1, "HELLO 1");
	for (unsigned i = 0; i < 20; i++) {
		says(1, "LOCK name-%u ttl=%us", i, 1 + i);
		says(2, "@w%u LOCK name-%u wait=20s", i, i);
		passes(137 * MSEC);
		if (i % 3 == 0)
			says(1, "UNLOCK name-%u", i);
		if (i == 10)
			falls(1);
	}
	passes(5 * SEC);
	for (unsigned k = 1; k < 3; k++)
		while ((line = next_line(k)))
			for (; *line; line++)
				sum = (sum ^ (unsigned char)*line) * 1099511628211u;
	sum = (sum ^ asked(CALL_ACQUIRE)) * 1099511628211u;
	sum = (sum ^ asked(CALL_EXTEND)) * 1099511628211u;
	cluster_close();
	return sum;
}

TEST(the_same_events_have_the_same_effects)
{
	uint64_t first = story();

	ck_assert_uint_eq(story(), first);
	cluster_begin(1);
}
