/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/deadlock/wait_graph.c: who goes on, who is refused, and the circle that is told. waitgraph_random_test.c compares it with a second opinion.
 */
#include "daemon/core/deadlock/wait_graph.h"

#include "daemon/base/netstring.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t key[2] = {1, 2};

static struct buf text, rows;
static struct span daemon_id; /* whose rows these are */
static int64_t owner, place;
static struct buf circle;
static struct wait_graph *graph;
static struct victim victim[VICTIMS_MOST];
static unsigned daemons;

static void daemon_ends(void)
{
	if (!daemon_id.p)
		return;
	netstring_put(&text, daemon_id);
	netstring_put(&text, (struct span){buf_begin(&rows), buf_length(&rows)});
	buf_clear(&rows);
}

static void begins(void)
{
	buf_clear(&text);
	buf_clear(&rows);
	daemon_id = (struct span){0};
}

/* An owner, alone at its daemon. */
static void comes(const char *id, int64_t at)
{
	daemon_ends();
	daemon_id = span_of(id);
	owner = 7;
	place = at;
}

static void row(char kind, const char *name, int64_t count)
{
	struct buf names = {0};

	netstring_put(&names, span_of(name));
	row_put(&rows, &(struct wait_row){kind, 1, owner, place, count, {buf_begin(&names), buf_length(&names)}});
	buf_release(&names);
}

static void wants(const char *name)
{
	row('w', name, 1);
}

static void wants_any(const char *one, const char *other)
{
	struct buf names = {0};

	netstring_put(&names, span_of(one));
	netstring_put(&names, span_of(other));
	row_put(&rows, &(struct wait_row){'w', 1, owner, place, 1, {buf_begin(&names), buf_length(&names)}});
	buf_release(&names);
}

static void holds(const char *name)
{
	row('h', name, 1);
}

static bool shows_all(const void *about, struct span name)
{
	return about || name.n > 0;
}

/* The circle of the victim at this daemon; "": there is none. */
static const char *refused(const char *id)
{
	unsigned n;

	daemon_ends();
	daemon_id = (struct span){0};
	if (graph)
		wait_graph_free(graph);
	graph = wait_graph_new((struct span){buf_begin(&text), buf_length(&text)}, key, &daemons);
	n = wait_graph_find(graph, span_of(id), victim);
	ck_assert_uint_le(n, 1);
	buf_clear(&circle);
	if (n > 0)
		wait_graph_write(&victim[0], shows_all, NULL, &circle, 2000);
	buf_append(&circle, "", 1);
	return buf_begin(&circle);
}

/* Owner a has x and wants y; owner b, which came later, has y and wants x. */
static void two_wait_for_each_other(void)
{
	begins();
	comes("a.ha", 10);
	holds("x");
	wants("y");
	comes("b.hb", 20);
	holds("y");
	wants("x");
}

TEST(of_two_owners_that_wait_for_each_other_the_later_one_is_refused)
{
	two_wait_for_each_other();
	ck_assert_str_eq(refused("a.ha"), "");
	ck_assert_uint_eq(daemons, 2);
	ck_assert_str_eq(refused("b.hb"), "x@ha<-y@hb<-x@ha");
	ck_assert_int_eq(victim[0].session, 1);
	ck_assert_int_eq(victim[0].owner, 7);
	ck_assert(!victim[0].permits && span_equal(victim[0].name, SPAN("x")));
}

TEST(an_owner_that_waits_for_a_circle_is_not_refused)
{
	two_wait_for_each_other();
	comes("c.hc", 30);
	holds("z");
	wants("x");
	ck_assert_str_eq(refused("c.hc"), "");
	ck_assert_str_eq(refused("b.hb"), "x@ha<-y@hb<-x@ha");
}

TEST(a_request_for_any_name_goes_on_when_one_of_them_becomes_free)
{
	begins();
	comes("a.ha", 10);
	holds("x");
	wants_any("y", "z");
	comes("b.hb", 20);
	holds("y");
	wants("x");
	ck_assert_str_eq(refused("b.hb"), "");
	comes("c.hc", 30);
	holds("z");
	wants("x");
	ck_assert_str_eq(refused("c.hc"), "x@ha<-z@hc<-x@ha");
}

TEST(an_owner_needs_each_of_its_requests)
{
	begins();
	comes("a.ha", 10);
	holds("x");
	wants("y");
	wants("z"); /* nobody has it */
	comes("b.hb", 20);
	holds("y");
	wants("x");
	ck_assert_str_eq(refused("b.hb"), "x@ha<-y@hb<-x@ha");
}

TEST(an_owner_is_not_in_its_own_way)
{
	begins();
	comes("a.ha", 10);
	holds("x");
	wants("x");
	ck_assert_str_eq(refused("a.ha"), "");
}

/* Owner a has x and wants a permit of three; b has so many of them and c has the others. */
static void two_have_permits(int64_t n)
{
	begins();
	comes("a.ha", 30);
	holds("x");
	row('p', "s", 3);
	comes("b.hb", 10);
	row('s', "s", n);
	wants("x");
	comes("c.hc", 20);
	if (n < 3)
		row('s', "s", 3 - n);
}

TEST(a_request_for_permits_goes_on_when_enough_of_them_become_free)
{
	two_have_permits(2);
	ck_assert_str_eq(refused("a.ha"), ""); /* c waits for nobody */
	two_have_permits(3);
	ck_assert_str_eq(refused("a.ha"), "s@hb<-x@ha<-s@hb");
	ck_assert(victim[0].permits);
}

TEST(the_permits_of_an_owner_are_not_free_while_it_waits_for_more)
{
	begins();
	comes("a.ha", 10);
	row('s', "s", 1);
	row('p', "s", 2);
	comes("b.hb", 20);
	row('s', "s", 1);
	ck_assert_str_eq(refused("b.hb"), "");
	comes("c.hc", 30);
	row('s', "s", 1);
	row('p', "s", 2);
	ck_assert_str_eq(refused("c.hc"), "s@ha<-s@hc<-s@ha");
}

TEST(an_owner_that_waits_for_itself_alone_goes_on)
{
	begins();
	comes("a.ha", 10);
	row('s', "s", 1);
	row('s', "s", 1);
	row('p', "s", 2);
	holds("x");
	comes("b.hb", 20);
	holds("y");
	wants("x");
	ck_assert_str_eq(refused("a.ha"), "");
	ck_assert_str_eq(refused("b.hb"), "");
}

TEST(a_lock_and_a_permit_of_one_name_are_not_in_the_way_of_each_other)
{
	begins();
	comes("a.ha", 10);
	holds("x");
	row('p', "y", 1);
	comes("b.hb", 20);
	holds("y");
	wants("x");
	ck_assert_str_eq(refused("b.hb"), "");
}

TEST(a_long_circle_is_told_with_dots)
{
	char name[300], next[300];
	const char *told;
	size_t n;

	begins();
	comes("d.h", 0);
	for (unsigned i = 0; i < 40; i++) {
		owner = place = i;
		snprintf(name, sizeof(name), "%0290u", i);
		snprintf(next, sizeof(next), "%0290u", (i + 1) % 40);
		holds(name);
		wants(next);
	}
	told = refused("d.h");
	n = strlen(told);
	ck_assert_int_eq(victim[0].owner, 39);
	ck_assert_uint_le(n, 2000);
	ck_assert(n > 1000 && strstr(told, "@h<-...<-"));
	ck_assert_mem_eq(told + n - 292, told, 292);
}

static bool is_sound(const char *one)
{
	struct buf list = {0};
	struct wait_row r;
	struct span rest;
	bool sound;

	netstring_put(&list, span_of(one));
	rest = (struct span){buf_begin(&list), buf_length(&list)};
	sound = row_next(&rest, &r);
	buf_release(&list);
	return sound;
}

TEST(garbage_at_the_store_is_left_out)
{
	static const char *const lists[] = {"", "x", "3:ab", "-3:abc", "99999999999999999999:a", "3", ":abc", "1:a", "1:a3:ab", "0:0:"};
	static const char *const bad[] = {"", "1:w", "1:w1:1", "1:w1:11:2", "1:w1:11:21:3", "1:w1:11:21:31:1", "1:z1:11:21:31:11:b", "2:wh1:11:21:31:11:b",
	                                  "0:1:11:21:31:11:b", "1:w1:x1:21:31:11:b", "1:w1:11:21:31:01:b", "1:w1:11:21:31:21:b", "1:h1:11:21:31:21:b",
	                                  "1:h1:11:21:31:11:b1:c", "1:p1:11:21:34:10251:b", "1:s1:11:21:32:-11:b", "1:w1:11:21:31:11:b1:", "1:w1:11:21:31:1x"};
	char many[1000] = "1:w1:11:21:31:1", longest[600];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct wait_graph *g = wait_graph_new(span_of(lists[i]), key, &daemons);

		ck_assert_uint_ge(daemons, 1);
		ck_assert_uint_eq(wait_graph_find(g, SPAN("d.h"), victim), 0);
		wait_graph_free(g);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!is_sound(bad[i]), "%s", bad[i]);
	for (unsigned i = 0; i < 64; i++)
		strcat(many, "1:b");
	ck_assert(is_sound(many));
	ck_assert(!is_sound(strcat(many, "1:b")));
	snprintf(longest, sizeof(longest), "1:h1:11:21:31:1512:%0512u", 0);
	ck_assert(is_sound(longest));
	snprintf(longest, sizeof(longest), "1:h1:11:21:31:1513:%0513u", 0);
	ck_assert(!is_sound(longest));
	ck_assert(is_sound("1:w1:11:22:-31:11:b1:c"));
	ck_assert(is_sound("1:p1:11:21:34:10241:b"));
}

TEST(a_row_that_is_not_sound_or_cut_off_hides_no_other)
{
	two_wait_for_each_other();
	netstring_put(&rows, SPAN("1:w"));
	holds("u");
	buf_append(&rows, "9:1:h", 5);
	ck_assert_str_eq(refused("b.hb"), "x@ha<-y@hb<-x@ha");
}

/* --- many owners ---------------------------------------------------------------------------------------------------- */

static double seconds_of(clock_t from)
{
	return (double)(clock() - from) / CLOCKS_PER_SEC;
}

/* As many as have room, each of which has one name and wants that of the next one, or the other one of two names. */
static unsigned many_come(bool ring)
{
	char name[16];
	unsigned i;

	begins();
	comes("d.h", 0);
	for (i = 0; buf_length(&rows) < ROWS_MAX - 100; i++) {
		owner = INT64_C(100000000000000000) + i;
		place = INT64_C(1700000000000000) + i;
		snprintf(name, sizeof(name), "%u", ring ? i : i % 2);
		holds(name);
		snprintf(name, sizeof(name), "%u", ring ? i + 1 : (i + 1) % 2);
		wants(name);
	}
	return i;
}

/* Loop: a long chain; a ring; each of many waits for each of many others. */
LOOP_TEST(many_owners_are_judged_in_a_millisecond, 3)
{
	unsigned n = many_come(_i < 2);
	clock_t from;

	ck_assert_uint_gt(n, 450);
	if (_i == 1) {
		char last[16];

		owner = n;
		snprintf(last, sizeof(last), "%u", n);
		holds(last);
		wants("0");
	}
	from = clock();
	for (unsigned i = 0; i < 100; i++)
		refused("d.h");
	ck_assert_double_lt(seconds_of(from), 0.1);
	ck_assert_int_eq(*refused("d.h") != '\0', _i > 0);
}
