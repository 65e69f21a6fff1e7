/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/deadlock/deadlock.c: owners of one daemon that wait for each other, and waits that only look like it. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* Session k holds name k. */
static void each_holds_its_own(unsigned sessions)
{
	cluster_begin(3);
	for (unsigned k = 1; k <= sessions; k++) {
		says(k, "LOCK %c", 'a' + (char)k - 1);
		hears(k, "OK *");
	}
}

FIXTURE(.teardown = cluster_close)

TEST(two_sessions_that_wait_for_each_other_are_a_deadlock)
{
	each_holds_its_own(2);
	says(1, "LOCK b wait=1m");
	says(2, "LOCK a wait=1m");
	ck_assert_str_eq(hears(2, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=a<-b<-a");
	hears_nothing(1);
	/* The victim keeps its lock, and the other goes on when the victim releases it. */
	says(2, "UNLOCK b");
	hears(2, "OK name=b count=0");
	hears(1, "OK name=b *");
}

TEST(owners_of_one_session_are_parties_of_their_own)
{
	cluster_begin(1);
	says(1, "LOCK a owner=x");
	says(1, "LOCK b owner=y");
	hears(1, "OK *");
	hears(1, "OK *");
	says(1, "@1 LOCK b owner=x wait=1m");
	passes(SEC / 10);
	says(1, "@2 LOCK a owner=y wait=1m");
	hears(1, "@2 ERR DEADLOCK cycle=a<-b<-a");
	hears_nothing(1);
}

TEST(another_owner_of_the_same_session_may_wait)
{
	cluster_begin(1);
	says(1, "LOCK a owner=x");
	says(2, "LOCK b");
	says(2, "@w LOCK a wait=1m");
	ignores(1);
	ignores(2);
	says(1, "@w LOCK b owner=y wait=1m");
	passes(FOUND_US);
	hears_nothing(1);
	says(2, "UNLOCK b");
	hears(1, "@w OK name=b *");
	says(1, "UNLOCK a owner=x");
	ignores(1);
	hears(2, "OK *");
	hears(2, "@w OK name=a *");
}

TEST(the_waits_of_another_owner_of_the_holders_session_do_not_matter)
{
	cluster_begin(1);
	says(1, "LOCK a");
	says(2, "LOCK b owner=p");
	says(2, "@w LOCK a owner=q wait=1m");
	hears(1, "OK *");
	hears(2, "OK *");
	says(1, "@w LOCK b wait=1m");
	passes(FOUND_US);
	hears_nothing(1);
	says(2, "UNLOCK b owner=p");
	hears(2, "OK *");
	hears(1, "@w OK name=b *");
}

TEST(a_lock_of_ones_own_as_another_owner_is_waited_for)
{
	cluster_begin(1);
	says(1, "LOCK a owner=x");
	says(1, "@w LOCK a owner=y wait=1m");
	hears(1, "OK *");
	passes(FOUND_US);
	hears_nothing(1);
	says(1, "UNLOCK a owner=x");
	hears(1, "OK name=a count=0");
	hears(1, "@w OK name=a *");
}

/* 2 and 3 wait for a in this order, and 2 for c of 3 as well: they wait for each other as soon as 2 has a. */
TEST(a_circle_that_comes_about_with_a_turn_is_found_soon)
{
	cluster_begin(1);
	says(1, "LOCK a");
	says(2, "LOCK b");
	says(2, "@w LOCK a wait=1m");
	ignores(1);
	ignores(2);
	says(3, "LOCK c");
	hears(3, "OK *");
	says(3, "@w LOCK a wait=1m");
	passes(SEC / 10);
	says(2, "@v LOCK c wait=1m");
	passes(FOUND_US);
	hears_nothing(2);
	says(1, "UNLOCK a");
	ignores(1);
	hears(2, "@w OK name=a *");
	passes(FOUND_US);
	hears(2, "@v ERR DEADLOCK cycle=c@h0<-a@h0<-c@h0");
	hears_nothing(3);
}

TEST(a_waiter_behind_the_one_in_the_way_is_not_waited_for)
{
	/* 2 holds b and waits for a, behind it 3 does; 3 may wait for b. */
	cluster_begin(3);
	says(1, "LOCK a");
	says(2, "LOCK b");
	says(2, "@w LOCK a wait=1m");
	says(3, "@w LOCK a wait=1m");
	says(3, "@v LOCK b wait=1m");
	ignores(1);
	ignores(2);
	passes(FOUND_US);
	hears_nothing(3);
	says(1, "UNLOCK a");
	ignores(1);
	hears(2, "@w OK name=a *");
	says(2, "UNLOCK b");
	hears(2, "OK name=b count=0");
	hears(3, "@v OK name=b *");
}

TEST(a_reentrant_request_is_no_deadlock)
{
	each_holds_its_own(2);
	says(1, "@w LOCK b wait=1m");
	says(2, "LOCK b wait=1m");
	hears(2, "OK name=b * count=2");
	says(2, "@a LOCK c wait=1m");
	hears(2, "@a OK name=c *");
}

TEST(a_cycle_that_was_broken_by_a_cancel_is_none)
{
	each_holds_its_own(2);
	says(1, "@w LOCK b wait=1m");
	says(1, "CANCEL @w");
	says(2, "@v LOCK a wait=1m");
	passes(FOUND_US);
	hears_nothing(2);
	ignores(1);
}

/* The cycle as it was told, read as a client reads it. */
static size_t cycle_told(unsigned k, char *out)
{
	char line[REPLY_MAX];
	struct reply_line read;
	struct span cycle;

	snprintf(line, sizeof(line), "OK%s", hears(k, "ERR DEADLOCK cycle=*") + strlen("ERR DEADLOCK"));
	ck_assert_int_eq(reply_parse(line, strlen(line), &read), 0);
	cycle = reply_find(&read, "cycle");
	ck_assert_ptr_nonnull(cycle.p);
	memcpy(out, cycle.p, cycle.n);
	return cycle.n;
}

static size_t cycle_of_two(const char *a, const char *b, char *out)
{
	cluster_begin(1);
	says(1, "LOCK %s", a);
	says(2, "LOCK %s", b);
	ignores(1);
	ignores(2);
	says(1, "LOCK %s wait=1m", b);
	says(2, "LOCK %s wait=1m", a);
	return cycle_told(2, out);
}

TEST(a_cycle_of_names_of_any_bytes_is_told_in_full)
{
	char out[REPLY_MAX];
	size_t n = cycle_of_two("\"x\\x00y\"", "\"q\\\" \"", out);

	ck_assert_uint_eq(n, strlen("x.y<-q\" <-x.y"));
	ck_assert_mem_eq(out, "x\0y<-q\" <-x\0y", n);
}

TEST(a_cycle_of_the_longest_names_is_told_in_full)
{
	char a[4 * NAME_MAX_BYTES + 3] = "\"", b[NAME_MAX_BYTES + 1] = "", out[REPLY_MAX];

	for (unsigned i = 0; i < NAME_MAX_BYTES; i++)
		strcat(a, "\\x01");
	strcat(a, "\"");
	memset(b, 'b', NAME_MAX_BYTES);
	ck_assert_uint_eq(cycle_of_two(a, b, out), 3 * NAME_MAX_BYTES + 4);
	ck_assert_int_eq(out[0], 1);
	ck_assert_mem_eq(out + NAME_MAX_BYTES, "<-b", 3);
}

/* Each of so many owners of few sessions has a permit of p and of q, and asks for another one, of which there are no more. */
static void many_owners_have_permits(unsigned sessions, unsigned owners)
{
	cluster_open(1);
	cluster.conf.store = "memory";
	cluster.conf.shared = false;
	daemon_starts(0);
	passes(SEC);
	for (unsigned k = 2; k <= 6; k++)
		session_opens(k, 0);
	for (unsigned k = 1; k <= sessions; k++)
		for (unsigned i = 0; i < owners; i++) {
			says(k, "ACQUIRE p limit=%u owner=%u", sessions * owners, i);
			hears(k, "OK *");
			says(k, "ACQUIRE q limit=%u owner=%u", sessions * owners, i);
			hears(k, "OK *");
		}
	passes(10 * SEC);
}

TEST(a_circle_is_found_beside_many_owners_that_wait)
{
	many_owners_have_permits(4, 50);
	for (unsigned k = 1; k <= 4; k++)
		for (unsigned i = 0; i < 50; i++)
			says(k, "@%u ACQUIRE %s limit=200 owner=%u wait=1h", i, i % 2 ? "q" : "p", i);
	passes(100 * MSEC);
	says(5, "LOCK a");
	says(6, "LOCK b");
	says(5, "LOCK b wait=1m");
	hears(5, "OK *");
	hears(6, "OK *");
	says(6, "LOCK a wait=1m");
	hears(6, "ERR DEADLOCK cycle=a<-b<-a");
	for (unsigned k = 1; k <= 4; k++)
		ignores(k);
}
