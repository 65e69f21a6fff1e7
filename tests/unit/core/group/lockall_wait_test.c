/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/group/groups.c: LOCKALL takes its names in one order, keeps what it has while it waits, and is served. */
#include "tests/fixture/groups.h"

#include <check.h>
#include <fnmatch.h>

/* Sessions that hold a name in turn, each for as long, so that somebody always holds it and another one waits for it. */
struct turn {
	const char *name;
	unsigned session;
	int64_t hold_us, until_us; /* 0: it waits */
};

static void turn_goes_on(struct turn *t)
{
	if (t->until_us && t->until_us <= cluster.now.us) {
		gives_back(t->session, t->name);
		t->until_us = 0;
		says(t->session, "LOCK %s wait=1h", t->name);
	}
	if (!t->until_us && !unanswered(t->session)) {
		hears(t->session, "OK name=? fence=* count=1");
		t->until_us = cluster.now.us + t->hold_us;
	}
}

/* Returns after how long session 9 is told OK, which asks for all names. */
static int64_t served_after(struct turn *turns, unsigned n)
{
	int64_t begun_us = cluster.now.us;

	for (unsigned i = 0; i < n; i++)
		says(turns[i].session, "LOCK %s wait=1h", turns[i].name);
	says(9, "@w LOCKALL a b wait=1h");
	while (unanswered(9)) {
		for (unsigned i = 0; i < n; i++)
			turn_goes_on(&turns[i]);
		passes(5 * MSEC);
		ck_assert_int_lt(cluster.now.us - begun_us, 600 * SEC);
	}
	for (unsigned k = 1; k <= 9; k++)
		ignores(k);
	return cluster.now.us - begun_us;
}

FIXTURE(.teardown = cluster_close)

TEST(lockall_is_served_although_its_names_are_never_free)
{
	struct turn turns[] = {{"a", 1, 800 * MSEC, 0}, {"a", 2, 800 * MSEC, 0}, {"b", 3, SEC, 0}, {"b", 4, SEC, 0}};

	cluster_begin(1);
	/* Behind each holder another one waits, so it waits for up to two seconds for each name. */
	ck_assert_int_le(served_after(turns, 4), 4 * SEC);
}

TEST(lockall_is_served_soon_where_names_are_held_briefly)
{
	struct turn turns[] = {{"a", 1, 20 * MSEC, 0}, {"a", 2, 30 * MSEC, 0}, {"b", 3, 25 * MSEC, 0}, {"b", 4, 35 * MSEC, 0}};

	cluster_begin(1);
	ck_assert_int_le(served_after(turns, 4), 3 * SEC);
}

static void cross_groups(unsigned first, unsigned second)
{
	unsigned done[8] = {0};

	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = first; k <= second; k += second - first) {
			const char *line;

			if (!unanswered(k))
				says(k, k == first ? "@w LOCKALL a b c wait=1h" : "@w LOCKALL c b a wait=1h");
			while ((line = next_line(k))) {
				if (fnmatch("@w OK n=3", line, 0))
					continue;
				done[k]++;
				says(k, "UNLOCK a");
				says(k, "UNLOCK b");
				says(k, "UNLOCK c");
			}
		}
		passes(20 * MSEC);
	}
	ck_assert_uint_ge(done[first], 20);
	ck_assert_uint_ge(done[second], 20);
	ignores(first);
	ignores(second);
}

TEST(lockalls_in_opposite_orders_do_not_block_each_other)
{
	cluster_begin(1);
	cross_groups(1, 2);
}

TEST(lockalls_of_two_daemons_in_opposite_orders_do_not_block_each_other)
{
	two_daemons(3);
	cross_groups(1, 2);
}

TEST(lockall_takes_its_names_in_their_order_and_keeps_what_it_has)
{
	cluster_begin(1);
	takes(1, "a");
	takes(2, "c");
	says(3, "@w LOCKALL d c b a wait=1m");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "b") && !key_is_there(0, "d"));
	gives_back(1, "a");
	passes(10 * MSEC);
	ck_assert(key_is_there(0, "a") && key_is_there(0, "b") && !key_is_there(0, "d"));
	says(1, "LOCK a");
	hears(1, "BUSY name=a *");
	passes(30 * SEC);
	hears_nothing(3);
	gives_back(2, "c");
	passes(10 * MSEC);
	hears_all(3, "@w ", "dcba");
}

TEST(a_name_that_is_lost_meanwhile_comes_before_those_behind_it)
{
	cluster_begin(1);
	session_opens_as_admin(9, 0);
	takes(2, "c");
	says(3, "@w LOCKALL a b c wait=1m");
	passes(10 * MSEC);
	ck_assert(key_is_there(0, "a") && key_is_there(0, "b"));
	says(4, "LOCK a wait=1m");
	says(9, "BREAK a");
	hears(9, "OK name=a *");
	passes(15 * SEC);
	hears(4, "OK name=a *");
	ck_assert(!key_is_there(0, "b"));
	gives_back(2, "c");
	gives_back(4, "a");
	passes(10 * MSEC);
	hears_all(3, "@w ", "abc");
}

TEST(a_lockall_that_is_refused_gives_back_what_it_had)
{
	cluster_begin(1);
	takes(1, "c");
	says(3, "LOCKALL a b c");
	passes(10 * MSEC);
	hears(3, "BUSY name=c *");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(lockall_that_waits_in_vain_is_told_timeout)
{
	cluster_begin(1);
	takes(1, "b");
	says(2, "LOCKALL a b wait=3s");
	passes(3 * SEC);
	hears(2, "TIMEOUT name=b waited_ms=3000 holder=* held_ms=3000 waiters=0");
	ck_assert(!key_is_there(0, "a"));
	takes(2, "a");
	ignores(1);
}

TEST(a_name_that_is_broken_before_the_lockall_is_answered_is_asked_for_again)
{
	cluster_begin(1);
	session_opens_as_admin(9, 0);
	takes(1, "b");
	takes(2, "a");
	says(3, "@w LOCKALL a b wait=1m");
	gives_back(2, "a");
	passes(10 * MSEC);
	ck_assert(key_is_there(0, "a"));
	says(9, "BREAK a");
	hears(9, "OK name=a *");
	passes(10 * MSEC);
	hears_nothing(3);
	gives_back(1, "b");
	passes(15 * SEC);
	hears_all(3, "@w ", "ab");
}

TEST(a_lease_that_is_at_risk_when_the_lockall_is_answered_is_told_so)
{
	cluster_begin(3);
	passes(SEC);
	takes(1, "b");
	says(2, "@b LOCK b wait=1m"); /* so the next lease of b has a range of tokens, and can be handed over */
	gives_back(1, "b");
	hears(2, "@b OK *");
	gives_back(2, "b");
	says(1, "LOCK b ttl=450ms");
	hears(1, "OK *");
	says(2, "LOCK a ttl=450ms");
	hears(2, "OK *");
	says(3, "@w LOCKALL a b wait=1m ttl=450ms");
	passes(2 * SEC);
	gives_back(2, "a");
	passes(MSEC);
	all_feel(MOOD_SILENT);
	passes(210 * MSEC);
	ignores(1);
	hears_nothing(3);
	says(1, "UNLOCK b");
	hears_all(3, "@w ", "ab");
	hears(3, "! RISK name=a *");
	all_feel(MOOD_WELL);
	ignores(3);
}

/* Readers elsewhere have both names, and writers of lower priority wait for them here. */
TEST(a_lockall_that_stands_before_all_who_wait_is_answered_at_once)
{
	two_daemons(3);
	says(2, "LOCK a mode=shared");
	says(2, "LOCK b mode=shared");
	ignores(2);
	says(1, "@a LOCK a wait=1m");
	says(1, "@b LOCK b wait=1m");
	passes(10 * MSEC);
	says(3, "LOCKALL a b mode=shared priority=1 wait=1m");
	passes(10 * MSEC);
	hears_all(3, "", "ab");
	hears_nothing(1);
}

TEST(a_lockall_that_comes_at_the_same_moment_stands_behind)
{
	cluster_begin(1);
	takes(1, "a");
	says(2, "@a LOCK a wait=1m priority=1");
	says(3, "@w LOCKALL a b wait=1m priority=1");
	gives_back(1, "a");
	hears(2, "@a OK name=a *");
	hears_nothing(3);
}
