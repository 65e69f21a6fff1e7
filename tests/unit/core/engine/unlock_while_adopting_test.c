/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/release.c: UNLOCK, keep= and a lock delay while the lock is being adopted. They act on whichever of its values stands at a store. */
#include "tests/fixture/held_lock.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;

/*
 * What the stores did before the lock was given up, by number: 0 they were not asked; 1 were asked and did nothing; 2 changed the value, and the answer was
 * lost; 3 changed it at one store; 4 change it behind the UNLOCK.
 */
#define STATES 5

/* 1 held a with these fields, and its daemon has restarted. 1 resumes, and the adoption is open in that way. */
static void adoption_is_open(const char *fields, unsigned how)
{
	begins_with_delay(3, 20 * SEC);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a %s", fields);
	hears(1, "OK name=a *");
	daemon_ends(0);
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 2 && how == 0; i++)
		falls(i);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	for (unsigned i = how == 0 ? 2 : 0; i < 3; i++)
		serves(i, 1); /* the probe */
	passes(0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(waiting_at(i), how > 0);
		if (how == 2 || (how == 3 && i == 1))
			feels(i, MOOD_LOSSY);
		else if (how == 1 || how == 3)
			loses(i, 1);
		feels(i, MOOD_SILENT);
	}
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), 0);
	session_opens(1, 0);
	says(1, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
}

static void stores_come(void)
{
	all_feel(MOOD_WELL);
	for (unsigned i = 0; i < 3; i++)
		if (!cluster.node[i].up)
			comes(i);
	passes(500 * MSEC);
}

/* Of 5 s, some 500 ms of which have passed. */
static void is_free_after_its_delay(void)
{
	says(3, "LOCK a wait=1m");
	passes(4300 * MSEC);
	hears_nothing(3);
	passes(800 * MSEC);
	hears(3, "OK name=a *");
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(an_unlock_frees_whichever_value_stands_there, 2 * STATES)
{
	adoption_is_open(_i & 1 ? "" : "delay=5s", (unsigned)_i / 2);
	says(1, "@u UNLOCK a");
	hears(1, "@u OK name=a count=0");
	hears(1, "@r OK session=* n=0");
	stores_come();
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	says(3, "LOCK a");
	hears(3, "OK name=a *");
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

LOOP_TEST(keep_leaves_whichever_value_stands_there_for_that_long, STATES)
{
	adoption_is_open("", (unsigned)_i);
	says(1, "@u UNLOCK a keep=5s");
	hears(1, "@u OK name=a count=0");
	stores_come();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_le(key_ttl_us(i, "a"), 5001 * MSEC);
		ck_assert_int_ge(key_ttl_us(i, "a"), 4400 * MSEC);
	}
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	is_free_after_its_delay();
}

LOOP_TEST(a_lock_delay_leaves_whichever_value_stands_there_for_that_long, STATES)
{
	adoption_is_open("delay=5s", (unsigned)_i);
	ignores(1);
	says(1, "@g HELLO 1 grace=0");
	ignores(1);
	goes(1, GONE_HANGUP);
	stores_come();
	is_free_after_its_delay();
}

LOOP_TEST(sync_is_answered_once_a_quorum_has_neither_value, STATES)
{
	adoption_is_open("", (unsigned)_i);
	says(1, "@u UNLOCK a sync=yes");
	hears(1, "@r OK session=* n=0");
	hears_nothing(1);
	stores_come();
	hears(1, "@u OK name=a count=0");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
}

/* Each release that waits is due at a moment in the future. */
TEST(no_release_is_due_in_the_past)
{
	struct instant due;

	adoption_is_open("", 0);
	says(1, "@u UNLOCK a sync=yes");
	ck_assert(service_deadline(cluster.daemon[0].service, &due));
	ck_assert(!instant_before(due, cluster.now));
}

TEST(sync_of_a_lock_that_stands_nowhere_is_a_loss)
{
	adoption_is_open("", 1);
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "somebody", 5 * SEC);
	says(1, "@u UNLOCK a sync=yes");
	hears(1, "@r OK session=* n=0");
	stores_come();
	hears(1, "@u ERR LOST *");
}

/* A renewal or an adoption over another connection is carried out after the UNLOCK. */
TEST(a_late_call_does_not_change_a_kept_key)
{
	struct parcel late;
	struct answer a;

	held_after_lock(3, "LOCK a");
	all_feel(MOOD_SILENT);
	says(1, "@e EXTEND a ttl=25s");
	late = cluster.node[0].last[CALL_EXTEND];
	late.call.name = SPAN("a");
	late.call.value = late.call.new_value = span_of(late.value);
	late.call.marker = span_of(marker_of(0));
	loses(0, 1);
	says(1, "UNLOCK a keep=5s");
	ignores(1);
	all_feel(MOOD_WELL);
	passes(SEC);
	memory_call(cluster.node[0].memory, &late.call, cluster.now, &a);
	ck_assert_int_eq(a.code, 'B');
	ck_assert_int_le(key_ttl_us(0, "a"), 4001 * MSEC);
}
