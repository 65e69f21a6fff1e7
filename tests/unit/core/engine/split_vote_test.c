/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/acquire.c: rounds in which nobody has a quorum, and the leading node, which all daemons ask first from then on. */
#include "daemon/core/member/membership.h"
#include "tests/fixture/split_votes.h"

#include <check.h>
#include <stdio.h>

/* Each daemon has the votes of its own nodes, and sees the values of others at the rest. */
static void votes_split(unsigned nodes, const char *request)
{
	all_feel(MOOD_SILENT);
	for (unsigned k = 1; k < 4; k++)
		says(k, "%s", request);
	for (unsigned i = 0; i < nodes; i++)
		serves_daemon(i % 3, i, 1);
	for (unsigned d = 0; d < 3; d++)
		for (unsigned i = 0; i < nodes; i++)
			if (i % 3 != d)
				serves_daemon(d, i, 1);
	for (unsigned k = 1; k < 4; k++)
		hears_nothing(k);
}

/* Calls of that kind that wait at a silent node, of daemon d. */
static unsigned asked_by(unsigned d, unsigned node, enum call_kind kind)
{
	const struct parcel *p;
	unsigned n = 0;

	TAILQ_FOREACH(p, &cluster.daemon[d].queue[node], link)
		n += p->call.kind == kind;
	return n;
}

TEST(the_order_of_the_nodes_is_the_same_in_every_daemon_of_every_version)
{
	ck_assert_uint_eq(member_weight(SPAN("orders/42"), SPAN("9f8e7d")), UINT64_C(12718952961861747886));
	ck_assert_uint_eq(member_weight(SPAN("orders/42"), SPAN("000000")), UINT64_C(11123627652216803500));
	ck_assert_uint_eq(member_weight(SPAN(""), SPAN("")), UINT64_C(8575965350431422183));
}

TEST(every_node_leads_its_share_of_the_names)
{
	static const struct span run_id[] = {SPAN("one"), SPAN("two"), SPAN("three")};
	unsigned leads[3] = {0};

	for (unsigned n = 0; n < 3000; n++) {
		char name[16];
		unsigned lead = 0;

		snprintf(name, sizeof(name), "name-%u", n);
		for (unsigned i = 1; i < 3; i++)
			if (member_weight(span_of(name), run_id[i]) > member_weight(span_of(name), run_id[lead]))
				lead = i;
		leads[lead]++;
	}
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_ge(leads[i], 900);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(after_a_split_all_daemons_ask_the_leading_node_and_it_alone, 2)
{
	unsigned nodes = _i ? 5 : 3, lead;

	three_daemons(nodes);
	votes_split(nodes, "LOCK a wait=1m");
	lead = leading("a", 0);
	passes(400); /* the pause is over for all; the leading node is still waited for */
	for (unsigned d = 0; d < 3; d++)
		for (unsigned i = 0; i < nodes; i++)
			ck_assert_uint_eq(asked_by(d, i, CALL_ACQUIRE), i == lead);
	all_feel(MOOD_WELL);
	passes(20 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_GRANTS) + figure(1, METRIC_GRANTS) + figure(2, METRIC_GRANTS), 1);
	for (unsigned k = 1; k < 4; k++)
		ignores(k);
}

TEST(the_winner_at_the_leading_node_has_its_token_after_two_round_trips)
{
	unsigned lead, extends;
	int64_t base;

	cluster_begin(3);
	passes(2 * SEC);
	lead = leading("a", 0);
	for (unsigned i = 0; i < 3; i++)
		if (i != lead)
			key_is_overwritten(i, "a", i == (lead + 1) % 3 ? "d1:1:00" : "d2:2:00", 50 * SEC);
	extends = asked(CALL_EXTEND);
	memory_set_fence(cluster.node[lead].memory, memory_fence(cluster.node[lead].memory) + 1000);
	says(1, "LOCK a wait=1m");
	hears_nothing(1);
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 1);
	base = memory_fence(cluster.node[lead].memory) + 1;
	for (unsigned i = 0; i < 3; i++)
		if (i != lead)
			memory_remove(cluster.node[i].memory, SPAN("a"));
	passes(SEC);
	ck_assert_int_eq(number_in(hears(1, GRANT), "fence"), base);
	ck_assert_uint_eq(asked(CALL_EXTEND), extends);
}

TEST(a_leading_node_that_does_not_answer_delays_nobody)
{
	unsigned lead;

	three_daemons(3);
	votes_split(3, "LOCK a wait=1m");
	lead = leading("a", 0);
	for (unsigned i = 0; i < 3; i++)
		if (i != lead)
			feels(i, MOOD_WELL);
	passes(20 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_GRANTS) + figure(1, METRIC_GRANTS) + figure(2, METRIC_GRANTS), 1);
	feels(lead, MOOD_WELL);
	for (unsigned k = 1; k < 4; k++)
		ignores(k);
}

TEST(a_leading_node_that_has_gone_is_replaced_by_the_next_in_the_same_order)
{
	unsigned lead, next;

	three_daemons(5);
	votes_split(5, "LOCK a wait=1m");
	lead = leading("a", 0);
	next = leading("a", (uint16_t)(1u << lead));
	falls(lead);
	passes(400);
	for (unsigned d = 0; d < 3; d++)
		for (unsigned i = 0; i < 5; i++)
			ck_assert_uint_eq(asked_by(d, i, CALL_ACQUIRE), i == next);
	comes(lead);
	all_feel(MOOD_WELL);
	for (unsigned k = 1; k < 4; k++)
		ignores(k);
}

TEST(a_leading_node_that_did_not_answer_is_passed_over_from_then_on)
{
	unsigned lead, next, asked_in_vain;

	cluster_begin(5);
	passes(2 * SEC);
	lead = leading("a", 0);
	next = leading("a", (uint16_t)(1u << lead));
	orphans_everywhere();
	says(1, "LOCK a wait=1m");
	feels(lead, MOOD_SILENT);
	passes(6 * MSEC);
	asked_in_vain = asked_by(0, lead, CALL_ACQUIRE);
	ck_assert_uint_ge(asked_in_vain, 1);
	for (unsigned i = 0; i < 5; i++)
		cluster.node[i].count[CALL_ACQUIRE] = 0;
	passes(12 * MSEC); /* not so long that the value at the next one would be gone past as well */
	ck_assert_uint_eq(asked_by(0, lead, CALL_ACQUIRE), asked_in_vain);
	for (unsigned i = 0; i < 5; i++)
		ck_assert(i == next ? cluster.node[i].count[CALL_ACQUIRE] > 1 : cluster.node[i].count[CALL_ACQUIRE] == 0);
	feels(lead, MOOD_WELL);
	hears_nothing(1);
}

TEST(a_refusal_of_the_leading_node_is_no_verdict)
{
	unsigned lead;

	three_daemons(3);
	votes_split(3, "LOCK a wait=1m");
	lead = leading("a", 0);
	refuses(lead, "OOM command not allowed");
	for (unsigned i = 0; i < 3; i++)
		if (i != lead)
			feels(i, MOOD_WELL);
	passes(20 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_GRANTS) + figure(1, METRIC_GRANTS) + figure(2, METRIC_GRANTS), 1);
	feels(lead, MOOD_WELL);
	for (unsigned k = 1; k < 4; k++)
		ignores(k);
}

TEST(a_lock_without_wait_is_answered_within_three_rounds)
{
	three_daemons(3);
	votes_split(3, "LOCK a");
	all_feel(MOOD_WELL);
	passes(20 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_GRANTS) + figure(1, METRIC_GRANTS) + figure(2, METRIC_GRANTS), 1);
	ck_assert_int_eq(figure(0, METRIC_REFUSALS) + figure(1, METRIC_REFUSALS) + figure(2, METRIC_REFUSALS), 2);
	for (unsigned d = 0; d < 3; d++)
		ck_assert_int_le(figure(d, METRIC_ROUNDS), 3);
	for (unsigned k = 1; k < 4; k++)
		ck_assert_uint_eq(ignores(k), 1);
}

TEST(a_waiter_that_the_leading_node_refuses_asks_all_again_in_a_second)
{
	unsigned lead, other, together, alone;

	cluster_begin(3);
	passes(2 * SEC);
	lead = leading("a", 0);
	other = lead == 0 ? 1 : 0;
	falls(3 - lead - other);
	key_is_overwritten(lead, "a", "orphan", 50 * SEC);
	says(1, "LOCK a wait=1m");
	cluster.node[other].count[CALL_ACQUIRE] = cluster.node[lead].count[CALL_ACQUIRE] = 0;
	passes(900 * MSEC);
	/* Eight at the leading node alone, and then all at once again. */
	together = cluster.node[other].count[CALL_ACQUIRE];
	alone = cluster.node[lead].count[CALL_ACQUIRE] - together;
	ck_assert_uint_ge(together, 2);
	ck_assert_uint_ge(alone, 8 * together);
	ck_assert_uint_le(alone, 8 * (together + 1));
	ck_assert_uint_le(alone + together, 40); /* a split that lasts is no race: the daemons ask more seldom */
	comes(3 - lead - other);
	passes(2 * SEC);
	hears(1, GRANT);
}

/* The session has waited for long, so the pauses are long by now. */
TEST(a_release_that_comes_while_the_stores_are_asked_is_no_split)
{
	cluster_begin(3);
	falls(2);
	key_is_overwritten(0, "a", "d1:1:00", 50 * SEC);
	key_is_overwritten(1, "a", "d1:1:00", 50 * SEC);
	says(1, "LOCK a wait=1m");
	passes(40 * SEC);
	hears_nothing(1);
	memory_remove(cluster.node[0].memory, SPAN("a"));
	feels(1, MOOD_TARDY);
	is_woken(0, 0, "a");
	is_woken(0, 1, "a");
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 0);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	is_woken(0, 1, "a");
	feels(1, MOOD_WELL);
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 1);
	passes(5 * MSEC);
	hears(1, GRANT);
}

TEST(a_lock_that_was_won_begins_with_all_nodes_at_once)
{
	three_daemons(3);
	votes_split(3, "LOCK a wait=1m");
	all_feel(MOOD_WELL);
	for (unsigned turn = 0; turn < 3; turn++) {
		passes(2 * SEC);
		for (unsigned k = 1; k < 4; k++)
			if (ignores(k))
				says(k, "UNLOCK a");
	}
	passes(2 * SEC);
	for (unsigned k = 1; k < 4; k++)
		ignores(k);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].count[CALL_ACQUIRE] = 0;
	says(1, "LOCK a");
	hears(1, GRANT);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(cluster.node[i].count[CALL_ACQUIRE], 1);
}

/* redis.foreign: after hand-overs the daemon leaves the name alone for a moment, and does not drop it. */
TEST(a_lock_that_was_won_and_left_alone_begins_with_all_nodes_at_once)
{
	cluster_open(3);
	cluster.conf.foreign = true;
	daemon_starts(0);
	passes(2 * SEC);
	key_is_overwritten(0, "a", "d1:1:00", MSEC);
	key_is_overwritten(1, "a", "d2:2:00", MSEC);
	for (unsigned k = 1; k < 5; k++)
		says(k, "LOCK a wait=1m");
	ck_assert_int_ge(figure(0, METRIC_SPLITS), 1);
	passes(100 * MSEC);
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(2, "OK name=a *");
	passes(110 * MSEC);
	says(2, "UNLOCK a"); /* no hand-over after 100 ms of them */
	hears_nothing(3);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].count[CALL_ACQUIRE] = 0;
	all_feel(MOOD_SILENT);
	passes(150 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(cluster.node[i].count[CALL_ACQUIRE], 1);
	all_feel(MOOD_WELL);
	hears(3, "OK name=a *");
	ignores(1);
	ignores(2);
}
