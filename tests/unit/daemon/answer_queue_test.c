/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/answer_queue.c. */
#include "daemon/main/answer_queue.h"

#include <check.h>
#include <string.h>

#define SOME 3000u

static struct answer_queue u;

static void add(uint64_t call)
{
	char found[16] = "found", text[16] = "text", marker[16] = "marker";
	const struct probe probe = {.marker = span_of(marker), .maxmemory = 7};
	const struct event e = {.kind = EVENT_ANSWER,
				.answer = {.call = call, .found = span_of(found), .text = span_of(text), .probe = call % 2 ? &probe : NULL}};

	answer_queue_add(&u, &e);
	memset(found, '#', sizeof(found));
	memset(text, '#', sizeof(text));
	memset(marker, '#', sizeof(marker));
}

static void assert_first(uint64_t call)
{
	const struct answer *a = &answer_queue_first(&u)->answer;

	ck_assert_uint_eq(a->call, call);
	ck_assert(span_equal(a->found, SPAN("found")));
	ck_assert(span_equal(a->text, SPAN("text")));
	ck_assert_int_eq(a->probe != NULL, call % 2);
	if (!a->probe)
		return;
	ck_assert(span_equal(a->probe->marker, SPAN("marker")));
	ck_assert_int_eq(a->probe->maxmemory, 7);
}

static void teardown(void)
{
	answer_queue_release(&u);
}

FIXTURE(.teardown = teardown)

TEST(answers_come_out_as_they_came_in)
{
	uint64_t in = 0, out = 0;

	while (in < SOME) {
		add(++in);
		if (in % 3 == 0)
			continue;
		assert_first(++out);
		answer_queue_drop_first(&u);
	}
	for (; !answer_queue_is_empty(&u); answer_queue_drop_first(&u))
		assert_first(++out);
	ck_assert_uint_eq(out, in);
}

TEST(a_line_that_is_never_empty_needs_no_more_room_for_that)
{
	for (unsigned i = 1; i <= 2; i++)
		add(i);
	for (unsigned i = 3; i < SOME; i++) {
		add(i);
		answer_queue_drop_first(&u);
	}
	ck_assert_uint_le(u.cap, 256);
}

static void ends(unsigned node)
{
	char reason[16] = "closed", address[16] = "there";
	const struct event e = {.kind = EVENT_NODE_DOWN, .node = {.index = node, .reason = span_of(reason), .address = span_of(address)}};

	answer_queue_add(&u, &e);
	memset(reason, '#', sizeof(reason));
	memset(address, '#', sizeof(address));
}

TEST(the_end_of_a_connection_comes_out_behind_the_answers_and_is_news_until_then)
{
	add(1);
	ends(2);
	ends(2);
	add(2);
	ck_assert(answer_queue_has_news(&u, 2) && !answer_queue_has_news(&u, 1));
	assert_first(1);
	for (unsigned i = 0; i < 2; i++) {
		answer_queue_drop_first(&u);
		ck_assert_int_eq(answer_queue_first(&u)->kind, EVENT_NODE_DOWN);
		ck_assert(span_equal(answer_queue_first(&u)->node.reason, SPAN("closed")));
		ck_assert(span_equal(answer_queue_first(&u)->node.address, SPAN("there")));
		ck_assert(answer_queue_has_news(&u, 2));
	}
	answer_queue_drop_first(&u);
	ck_assert(!answer_queue_has_news(&u, 2));
	assert_first(2);
}

TEST(what_a_server_publishes_is_no_news_of_its_connection)
{
	const struct event said = {.kind = EVENT_SUBSCRIBED, .node = {.index = 2, .reason = SPAN("NOPERM")}};

	answer_queue_add(&u, &said);
	ck_assert(!answer_queue_has_news(&u, 2));
	ends(2);
	answer_queue_drop_first(&u);
	ck_assert(answer_queue_has_news(&u, 2));
	answer_queue_drop_first(&u);
	ck_assert(!answer_queue_has_news(&u, 2));
}

TEST(what_is_left_is_freed)
{
	for (unsigned i = 1; i <= 10; i++)
		add(i);
	ends(0);
}
