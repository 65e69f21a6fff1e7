/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/lock/claim.c: what daemons tell each other of a holder. */
#include "daemon/core/lock/claim.h"
#include "proto/proto.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct buf out;

static void begin(void)
{
	buf_init(&out);
}

static void end(void)
{
	buf_release(&out);
}

static const struct holder_text whole = {
	.daemon = {"0123456789abcdef.db-3.example_org", 33},
	.name = {"orders/42", 9},
	.number = 7,
	.held_ms = 12400,
	.label = {"worker 7", 8},
	.peer = {"unix", 4},
	.pid = 4211,
	.uid = 33,
	.owner = {"thread 1", 8},
	.remark = {{"nightly: \"export\"\n", 18}, SPAN("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
};

static struct span written(const struct holder_text *c, bool question)
{
	buf_clear(&out);
	(question ? holder_text_put_question : holder_text_put)(&out, c);
	return (struct span){buf_begin(&out), buf_length(&out)};
}

static void is_same_text(struct span text, struct span expected)
{
	ck_assert_msg(span_equal(text, expected), "%.*s instead of %.*s", (int)text.n, text.p, (int)expected.n, expected.p);
}

FIXTURE(.setup = begin, .teardown = end)

TEST(a_card_is_read_as_it_was_written)
{
	struct holder_text c;

	ck_assert(holder_text_read(written(&whole, false), &c));
	is_same_text(c.daemon, whole.daemon);
	is_same_text(c.name, whole.name);
	is_same_text(c.label, whole.label);
	is_same_text(c.peer, whole.peer);
	is_same_text(c.owner, whole.owner);
	is_same_text(c.remark.note, whole.remark.note);
	is_same_text(c.remark.trace, whole.remark.trace);
	ck_assert_int_eq(c.number, 7);
	ck_assert_int_eq(c.held_ms, 12400);
	ck_assert_int_eq(c.pid, 4211);
	ck_assert_int_eq(c.uid, 33);
	ck_assert(holder_text_read_question(written(&whole, true), &c));
	is_same_text(c.daemon, whole.daemon);
	is_same_text(c.name, whole.name);
	ck_assert_int_eq(c.number, 7);
}

TEST(the_longest_card_is_a_message)
{
	char text[CARD_OWNER_MAX + 1];
	struct holder_text c, longest = whole;

	memset(text, 'x', sizeof(text));
	longest.name = (struct span){text, NAME_MAX_BYTES};
	longest.label = longest.peer = longest.remark.note = (struct span){text, CARD_TEXT_MAX};
	longest.owner = (struct span){text, CARD_OWNER_MAX};
	longest.number = longest.held_ms = 999999999999999;
	longest.pid = longest.uid = 999999999999999999;
	ck_assert(holder_text_read(written(&longest, false), &c));
	ck_assert_uint_le(buf_length(&out), CARD_MAX);
	for (unsigned i = 0; i < 4; i++) {
		struct holder_text longer = longest;

		(*(struct span *[]){&longer.label, &longer.peer, &longer.owner, &longer.remark.note}[i]).n++;
		ck_assert(!holder_text_read(written(&longer, false), &c));
	}
}

TEST(later_versions_may_say_more)
{
	struct holder_text c;

	(void)written(&whole, false);
	buf_printf(&out, "5:later");
	ck_assert(holder_text_read((struct span){buf_begin(&out), buf_length(&out)}, &c));
	is_same_text(c.remark.note, whole.remark.note);
	is_same_text(c.remark.trace, whole.remark.trace);
}

TEST(a_part_of_a_card_is_none)
{
	struct span message = written(&whole, false);
	size_t without_trace = message.n - strlen("55:") - whole.remark.trace.n;
	struct holder_text c;

	for (size_t n = 0; n < message.n; n++)
		ck_assert(holder_text_read((struct span){message.p, n}, &c) == (n == without_trace));
	ck_assert(holder_text_read(message, &c));
}

TEST(a_card_of_an_earlier_version_has_no_trace_and_a_text_that_is_none_is_left_out)
{
	struct holder_text c, other = whole;

	other.remark.trace = SPAN("<script>");
	ck_assert(holder_text_read(written(&other, false), &c));
	is_same_text(c.remark.note, whole.remark.note);
	is_same_text(c.remark.trace, SPAN(""));
	(void)written(&whole, false);
	ck_assert(holder_text_read((struct span){buf_begin(&out), buf_length(&out) - strlen("55:") - whole.remark.trace.n}, &c));
	is_same_text(c.remark.note, whole.remark.note);
	is_same_text(c.remark.trace, SPAN(""));
}

static bool reads(const char *text)
{
	struct holder_text c;

	return holder_text_read(span_of(text), &c);
}

TEST(what_no_daemon_writes_is_refused)
{
	struct holder_text c;
	char big[CARD_MAX + 64];
	int n;

	ck_assert(reads("4:ab.h1:a1:72:401:l4:unix1:11:20:0:"));
	ck_assert(!reads("4:ab:h1:a1:72:401:l4:unix1:11:20:0:")); /* a channel of another kind */
	ck_assert(!reads("4:ab h1:a1:72:401:l4:unix1:11:20:0:"));
	ck_assert(!reads("0:1:a1:72:401:l4:unix1:11:20:0:"));
	ck_assert(!reads("4:ab.h0:1:72:401:l4:unix1:11:20:0:")); /* no name */
	ck_assert(!reads("4:ab.h1:a1:02:401:l4:unix1:11:20:0:")); /* no value has this number */
	ck_assert(!reads("4:ab.h1:a2:-72:401:l4:unix1:11:20:0:"));
	ck_assert(!reads("4:ab.h1:a1:73:-401:l4:unix1:11:20:0:")); /* held for less than nothing */
	ck_assert(!reads("4:ab.h1:a1:718:9999999999999999991:l4:unix1:11:20:0:"));
	ck_assert(!reads("4:ab.h1:a1:72:401:l4:unix2:-21:20:0:"));
	ck_assert(!reads("4:ab.h1:a1:72:401:l4:unix1:x1:20:0:"));
	n = snprintf(big, sizeof(big), "%s", "4:ab.h1:a1:72:401:l4:unix1:11:20:0:");
	memset(big + n, '1', sizeof(big) - (size_t)n);
	ck_assert(!holder_text_read((struct span){big, sizeof(big)}, &c));
	ck_assert(!holder_text_read_question((struct span){big, sizeof(big)}, &c));
	ck_assert(!holder_text_read_question(SPAN(""), &c));
}

static void is_shown_as(struct span label, struct span peer, int64_t pid, const char *expected)
{
	char who[CARD_WHO_MAX];
	const struct holder_text c = {.label = label, .peer = peer, .pid = pid, .uid = 33};

	is_same_text((struct span){who, holder_text_who(&c, who)}, span_of(expected));
}

TEST(the_client_is_shown_as_on_its_own_host)
{
	is_shown_as(SPAN("worker 7"), SPAN("unix"), 4211, "worker 7 pid=4211 uid=33");
	is_shown_as(SPAN(""), SPAN("unix"), 4211, "pid=4211 uid=33");
	is_shown_as(SPAN("worker 7"), SPAN("10.0.0.5:51234"), -1, "worker 7 10.0.0.5:51234");
	is_shown_as(SPAN(""), SPAN("10.0.0.5:51234"), -1, "10.0.0.5:51234");
	is_shown_as(SPAN("worker 7"), SPAN(""), -1, "worker 7");
	is_shown_as(SPAN(""), SPAN(""), -1, "");
}

TEST(a_label_is_told_apart_from_what_the_daemon_knows)
{
	char longest[CARD_TEXT_MAX + 1], who[CARD_TEXT_MAX + 8];

	is_shown_as(SPAN("backup pid=1 uid=0"), SPAN("10.0.0.5:51234"), -1, "'backup pid=1 uid=0' 10.0.0.5:51234");
	is_shown_as(SPAN("pid=1"), SPAN("unix"), 4211, "'pid=1' pid=4211 uid=33");
	is_shown_as(SPAN("a 10.0.0.9:1"), SPAN("10.0.0.5:51234"), -1, "'a 10.0.0.9:1' 10.0.0.5:51234");
	is_shown_as(SPAN("@db1"), SPAN(""), -1, "'@db1'");
	is_shown_as(SPAN("10.0.0.9:1"), SPAN(""), -1, "'10.0.0.9:1'");
	is_shown_as(SPAN("a@db1"), SPAN(""), -1, "a@db1");
	is_shown_as(SPAN("a' pid=1 uid=0 '"), SPAN("unix"), 4211, "'a? pid=1 uid=0 ?' pid=4211 uid=33");
	memset(longest, '=', CARD_TEXT_MAX);
	longest[CARD_TEXT_MAX] = '\0';
	snprintf(who, sizeof(who), "'%s' x", longest);
	is_shown_as(span_of(longest), SPAN("x"), -1, who);
}
