/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/queries.c: LIST of a table that is read in slices: what it sees, who waits, how it ends. */
#include "tests/fixture/resumable.h"
#include "tests/fixture/cluster.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define AT_ONCE 4

/* More than that many names are listed in slices. */
static void slices_begin(void)
{
	cluster_open(1);
	cluster.conf.listed = AT_ONCE;
	cluster.conf.limits.waiting = 8;
	daemon_starts(0);
	passes(60 * SEC);
}

/* n000 … in no order. */
static void holds(unsigned k, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		says(k, "LOCK n%03u", (i * 37) % 100);
	ignores(k);
}

static void a_list_is_under_way(void)
{
	slices_begin();
	holds(1, 0, 60);
	says(2, "@l LIST");
	hears_nothing(2);
}

/* Waits for the next line of k, a slice at a time. */
static const char *line_of(unsigned k)
{
	const char *line;

	for (unsigned i = 0; i < 1000; i++) {
		line = next_line(k);
		if (line)
			return line;
		passes(MSEC);
	}
	ck_abort_msg("no answer");
	return NULL;
}

/* Rows of names in their order; the names; the last line. */
static const char *rows_in_order(unsigned k, char name[][16], unsigned *ret_n)
{
	const char *line;

	for (*ret_n = 0; strncmp(line = line_of(k), "@l * ", 5) == 0; ++*ret_n) {
		ck_assert_int_eq(sscanf(line, "@l * name=%15s", name[*ret_n]), 1);
		ck_assert(*ret_n == 0 || strcmp(name[*ret_n - 1], name[*ret_n]) < 0);
	}
	ck_assert_int_eq(number_in(line, "n"), *ret_n);
	return line;
}

FIXTURE(.teardown = cluster_close)

TEST(a_short_table_is_listed_at_once_and_a_long_one_while_others_are_served)
{
	slices_begin();
	holds(1, 0, AT_ONCE);
	says(2, "LIST");
	for (unsigned i = 0; i < AT_ONCE; i++)
		hears(2, "\\* name=n*");
	hears(2, "OK n=4 more=0");
	holds(1, AT_ONCE, 56);
	says(2, "LIST");
	says(1, "PING");
	hears(1, "OK");
	hears_nothing(2);
	passes(MSEC / 2); /* a slice, and no second */
	hears_nothing(2);
	passes(SEC);
	ck_assert_uint_eq(ignores(2), 61);
}

TEST(pages_of_a_long_table_are_in_the_order_of_names)
{
	char name[100][16], after[16] = "";
	unsigned n, seen = 0;
	int64_t more;

	slices_begin();
	holds(1, 0, 60);
	do {
		says(2, *after ? "@l LIST locks limit=7 prefix=n after=%s" : "@l LIST limit=7", after);
		more = number_in(rows_in_order(2, name, &n), "more");
		seen += n;
		ck_assert_int_eq(more, 60 - (int)seen);
		ck_assert(strcmp(name[0], after) > 0);
		strcpy(after, name[n - 1]);
	} while (more);
	ck_assert_uint_eq(seen, 60);
	says(2, "@l LIST limit=0");
	ck_assert_int_eq(number_in(rows_in_order(2, name, &n), "more"), 60);
	says(2, "@l LIST prefix=n04 after=n041");
	hears_nothing(2);
	rows_in_order(2, name, &n);
	ck_assert_str_eq(name[0], "n043");
}

/* While it goes on, n1… are freed and m… are taken: enough that the table grows. */
/* As many sessions as like may ask for it in one pass of the loop. */
TEST(a_list_of_a_thousand_locks_takes_several_steps)
{
	unsigned n = 0;

	cluster_begin(1);
	for (unsigned i = 0; i < 1000; i++)
		says(1, "@%u LOCK %u", i, i);
	ignores(1);
	says(2, "LIST");
	while (next_line(2))
		n++;
	ck_assert_uint_le(n, 256);
	passes(10 * MSEC);
	while (next_line(2))
		n++;
	ck_assert_uint_eq(n, 1001);
}

TEST(a_lock_that_is_held_all_the_while_is_listed_once_and_a_listed_lock_is_held)
{
	char name[400][16];
	unsigned n, stayed = 0;

	slices_begin();
	holds(1, 0, 60);
	says(2, "@l LIST limit=10000");
	for (unsigned i = 0; i < 300; i++)
		says(3, "LOCK m%u", i);
	passes(2 * MSEC);
	for (unsigned i = 0; i < 300; i++)
		says(3, "UNLOCK m%u", i);
	for (unsigned i = 10; i < 20; i++)
		says(1, "UNLOCK n0%u", i);
	ignores(1);
	ignores(3);
	rows_in_order(2, name, &n);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(name[i][0], 'n');
		ck_assert(strncmp(name[i], "n01", 3) != 0);
		stayed++;
	}
	says(2, "@l LIST");
	rows_in_order(2, name, &n);
	ck_assert_uint_eq(stayed, n);
}

/* Once at each moment of the list: the whole page is released. */
TEST(a_page_of_which_nothing_is_left_is_not_the_last)
{
	for (unsigned slices = 0;; slices++) {
		char name[100][16];
		const char *line;
		unsigned n;

		slices_begin();
		holds(1, 0, 100);
		says(2, "@l LIST limit=3");
		for (unsigned i = 0; i < slices; i++)
			passes(MSEC);
		for (unsigned i = 0; i < 3; i++)
			says(1, "UNLOCK n00%u", i);
		ignores(1);
		line = next_line(2);
		if (line)
			break; /* answered before */
		rows_in_order(2, name, &n);
		ck_assert_uint_gt(n, 0);
		ck_assert_str_ge(name[0], "n003");
		cluster_close();
	}
	ignores(2);
}

static void one_is_about_to_be_lost(void)
{
	slices_begin();
	says(3, "LOCK n000 renew=no ttl=200ms");
	holds(1, 1, 40);
}

/* How many milliseconds after its grant the key is no longer left alone, and only the loss is remembered. */
static unsigned lost_after(void)
{
	unsigned ms = 0;

	one_is_about_to_be_lost();
	cluster.conf.listed = 1000;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	do {
		passes(MSEC);
		ms++;
		says(2, "LIST prefix=n000");
	} while (ignores(2) == 2);
	ignores(3);
	cluster_close();
	return ms;
}

/* Once at each moment of the list. */
TEST(a_lock_that_is_lost_during_the_list_is_not_listed)
{
	unsigned lost = lost_after();

	ck_assert_uint_gt(lost, 50);
	for (unsigned early = 0; early < 50; early++) {
		unsigned ms = lost - early;

		one_is_about_to_be_lost();
		passes(ms * MSEC);
		says(2, "LIST prefix=n000");
		for (; unanswered(2) > 0; ms++)
			passes(MSEC);
		ck_assert_uint_eq(ignores(2), ms <= lost ? 2 : 1);
		ignores(3);
		cluster_close();
	}
	slices_begin();
}

TEST(a_long_table_of_sessions_is_listed_likewise)
{
	slices_begin();
	for (unsigned k = 1; k <= 40; k++)
		says(k, "HELLO 1 name=%s grace=1m", k % 2 ? "odd" : "even");
	for (unsigned k = 1; k <= 40; k++)
		ignores(k);
	goes(7, GONE_RESET);
	says(2, "LIST sessions prefix=odd");
	hears_nothing(2);
	goes(9, GONE_RESET); /* away, but told all the same, and once */
	says(11, "QUIT");
	ignores(11);
	passes(SEC);
	for (unsigned k = 1; k <= 39; k += 2) {
		char row[64];

		snprintf(row, sizeof(row), "\\* session=%u name=odd *", k);
		if (k != 11)
			hears(2, row);
	}
	hears(2, "OK n=19 more=0");
	says(2, "LIST sessions after=38 limit=1");
	passes(SEC);
	hears(2, "\\* session=39 *");
	hears(2, "OK n=1 more=1");
}

TEST(requests_behind_an_untagged_list_wait_and_tagged_ones_do_not)
{
	slices_begin();
	holds(1, 0, 60);
	says(2, "LIST limit=1");
	says(2, "PING");
	says(2, "@p PING");
	hears(2, "@p OK");
	hears_nothing(2);
	passes(SEC);
	hears(2, "\\* name=n000 *");
	hears(2, "OK n=1 more=59");
	hears(2, "OK");
	says(2, "@l LIST limit=1");
	says(2, "@l PING");
	hears(2, "@l ERR TAGINUSE *");
	says(2, "PING");
	hears(2, "OK");
	passes(SEC);
	ck_assert_uint_eq(ignores(2), 2);
}

TEST(sessions_take_turns_and_have_so_many_lists_at_most)
{
	slices_begin();
	holds(1, 0, 60);
	for (unsigned i = 0; i < 8; i++)
		says(2, "@l%u LIST limit=0", i);
	hears_nothing(2);
	says(2, "@l8 LIST");
	hears(2, "@l8 ERR LIMIT *8*");
	says(3, "LIST limit=0");
	ck_assert_str_eq(line_of(2), "@l0 OK n=0 more=60");
	hears_nothing(3);
	ck_assert_str_eq(line_of(3), "OK n=0 more=60");
	hears_nothing(2);
	passes(SEC);
	ck_assert_uint_eq(ignores(2), 7);
}

/* How many slices pass until k has heard the end of its LIST. */
static unsigned slices_until_answered(unsigned k)
{
	unsigned n = 0;

	says(k, "LIST limit=0");
	for (const char *line; !(line = next_line(k)); n++) {
		ck_assert_uint_lt(n, 1000);
		passes(MSEC);
	}
	return n;
}

TEST(a_list_waits_for_a_slice_of_each_other_peer_and_not_of_each_session)
{
	static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};
	unsigned alone;

	slices_begin();
	holds(1, 0, 60);
	session_opens_from(10, 0, &other);
	alone = slices_until_answered(10);
	for (unsigned k = 2; k < 10; k++)
		says(k, "LIST");
	ck_assert_uint_le(slices_until_answered(10), 2 * alone + 2);
	passes(SEC);
	for (unsigned k = 2; k < 10; k++)
		ck_assert_uint_eq(ignores(k), 61);
}

TEST(a_half_closed_session_hears_its_list_and_then_ends)
{
	a_list_is_under_way();
	half_closes(2);
	says(3, "LIST limit=1");
	half_closes(3);
	says(4, "HELLO 1 grace=1m");
	says(4, "LIST limit=2");
	ignores(4);
	half_closes(4);
	ck_assert(!hung_up(2) && !hung_up(3) && !hung_up(4));
	passes(SEC);
	ck_assert_uint_eq(ignores(2), 61);
	ck_assert_uint_eq(ignores(3), 2);
	ck_assert_uint_eq(ignores(4), 3);
	ck_assert(hung_up(2) && hung_up(3) && hung_up(4));
}

TEST(a_list_ends_with_its_connection_and_the_next_goes_on)
{
	struct secret s;

	a_list_is_under_way();
	says(2, "@m LIST");
	says(3, "LIST limit=1");
	passes(MSEC);
	goes(2, GONE_HANGUP);
	s = says_hello(4, "grace=1m");
	says(4, "LOCK mine");
	ignores(4);
	says(4, "LIST limit=2");
	says(5, "@q LIST");
	says(5, "QUIT");
	hears(5, "OK");
	goes(4, GONE_RESET);
	passes(SEC);
	ck_assert_uint_eq(ignores(3), 2);
	resumes(6, &s);
	hears(6, "\\* name=mine *");
	hears(6, "OK session=* n=1");
	passes(SEC);
	hears_nothing(6);
}

TEST(a_daemon_that_stops_refuses_what_is_not_listed_yet)
{
	struct event event = {.kind = EVENT_STOP};

	a_list_is_under_way();
	says(2, "@m LIST");
	says(3, "LIST");
	says(3, "LIST");
	passes(MSEC);
	ck_assert_int_eq(daemon_step(0, &event), 0);
	hears(2, "@l ERR DRAINING *");
	hears(3, "ERR DRAINING *");
	hears(3, "ERR DRAINING *");
	hears(2, "@m ERR DRAINING *");
	ck_assert(hung_up(2) && hung_up(3));
	goes(1, GONE_HANGUP);
	goes(2, GONE_HANGUP);
	goes(3, GONE_HANGUP);
}

TEST(a_daemon_that_dies_meanwhile_leaves_nothing)
{
	a_list_is_under_way();
	says(2, "@m LIST");
	says(3, "LIST");
	passes(2 * MSEC);
	daemon_ends(0);
}
