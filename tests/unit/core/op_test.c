/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/op.c: the accounting of one operation's calls and votes, by itself. */
#include "daemon/core/op.h"

#include "daemon/base/mem.h"

#include <check.h>

static struct core core;
static struct members members;
static struct lock_table locks;
static struct op_table ops;
static struct effects effects;
static struct lock *lock;

static void lock_open(void)
{
	static const struct core_conf conf = {
		.nodes = 3, .label = {"a", "b", "c"}, .set = "s", .host = "h", .seed = {1, 2}, .timeout_us = 50 * MSEC};

	core_init(&core, &conf);
	effects_init(&effects);
	core.out = &effects;
	core.now = (struct instant){100 * SEC};
	members_init(&members, &core);
	for (unsigned i = 0; i < conf.nodes; i++)
		members.node[i].state = MEMBER_JOINED;
	lock_table_init(&locks, &core);
	op_table_init(&ops, &core, &members);
	lock = lock_find_or_add(&locks, SPAN("name"));
	lock->lease.ttl_us = 10 * SEC;
	lock->lease.delay_us = 2 * SEC;
	lock_new_value(&locks, lock);
}

static void lock_close(void)
{
	op_table_release(&ops);
	lock_table_release(&locks);
	core_release(&core);
	effects_release(&effects);
}

static struct op *answered(struct op *op, unsigned node, char code, enum answer_class class)
{
	struct answer a = {.call = op->slot, .node = node, .class = class, .code = code, .fence = 77, .pttl_ms = 500};

	return op_answered(&ops, &a);
}

START_TEST(an_acquire_asks_for_lease_and_delay_and_votes_for_the_lease_alone)
{
	struct op *op = op_new(&ops, OP_ACQUIRE, lock);
	const struct call *c;

	op_send_acquire(&ops, op, 1, 12345, SPAN(""), 0);
	c = &effects.item[0].call;
	ck_assert_int_eq(c->kind, CALL_ACQUIRE);
	ck_assert_uint_eq(c->id, op->slot);
	ck_assert_uint_eq(c->node, 1);
	ck_assert_int_eq(c->px_ms, 12000);
	ck_assert_int_eq(c->fence, 12345);
	ck_assert_int_eq(c->range, 0);
	ck_assert_int_eq(c->not_after_ms, 0);
	ck_assert(span_equal(c->name, SPAN("name")));
	ck_assert_uint_eq(lock->lease.placed.bits, 2);
	core.now = (struct instant){103 * SEC};
	ck_assert_ptr_eq(answered(op, 1, 'G', ANSWER_EXECUTED), op);
	ck_assert_uint_eq(op->yes.bits, 2);
	ck_assert_int_eq(op->base[1], 77);
	ck_assert_int_eq(op->votes.until[1].us, 109897 * MSEC);
}
END_TEST

/* A slow answer shows the clock only roughly. By one bound the call is in time, by the other it is too late for the lease. */
START_TEST(an_acquire_never_runs_when_the_lease_may_be_over_without_it)
{
	struct op *op = op_new(&ops, OP_ACQUIRE, lock);
	const struct call *c;

	members.node[1].clock = (struct member_clock){.known = true, .low = 400 * SEC, .high = 400 * SEC + _i * SEC, .at = core.now};
	op_send_acquire(&ops, op, 1, 12345, SPAN(""), 0);
	c = &effects.item[0].call;
	ck_assert_int_gt(c->not_after_ms, 500050);
	ck_assert_int_le(c->not_after_ms, _i < 9 ? 500051 + _i * 1000 : 509897);
}
END_TEST

START_TEST(each_answer_is_counted_once)
{
	struct op *op = op_new(&ops, OP_ACQUIRE, lock);

	op_send_acquire(&ops, op, 0, 1, SPAN(""), 0);
	ck_assert_uint_eq(op->open.bits, 1);
	ck_assert_ptr_eq(answered(op, 0, 'G', ANSWER_EXECUTED), op);
	ck_assert_uint_eq(op->open.bits, 0);
	ck_assert_ptr_null(answered(op, 0, 'G', ANSWER_EXECUTED));
	ck_assert_ptr_null(answered(op, 1, 'G', ANSWER_EXECUTED));
}
END_TEST

START_TEST(a_grant_counts_only_where_the_store_is_joined)
{
	static const char codes[] = "GAE";
	struct op *op = op_new(&ops, OP_ACQUIRE, lock);

	members.node[0].state = MEMBER_PROBING;
	op_send_acquire(&ops, op, 0, 12345, SPAN(""), 0);
	answered(op, 0, codes[_i], ANSWER_EXECUTED);
	ck_assert_uint_eq(op->yes.bits, codes[_i] == 'E');
	ck_assert_uint_eq(op->no.bits, 0);
	ck_assert_uint_eq(lock->lease.placed.bits, 1);
	op_free(&ops, op);
}
END_TEST

START_TEST(a_vote_that_is_heard_after_a_jump_ends_earlier_by_the_jump)
{
	struct op *op = op_new(&ops, OP_ACQUIRE, lock);
	struct answer a = {.call = op->slot, .node = 1, .code = 'G', .fence = 77, .server_us = 500 * SEC};
	int64_t ahead = _i ? 3 * SEC : 0;

	members.node[1].connected = true;
	members.node[1].clock = (struct member_clock){.known = true, .low = 400 * SEC + ahead, .high = 400 * SEC + ahead};
	op_send_acquire(&ops, op, 1, 12345, SPAN(""), 0);
	core.now.us += 2 * MSEC;
	members.node[1].clock.at = members.node[1].clock.sure = core.now;
	op_answered(&ops, &a);
	ck_assert_int_eq(op->votes.until[1].us, vote_until((struct instant){100 * SEC - ahead}, 10 * SEC).us);
	op_free(&ops, op);
}
END_TEST

START_TEST(an_answer_is_granted_refused_queued_behind_wrong_type_or_unknown)
{
	static const struct {
		enum answer_class class;
		char code;
		bool yes, no, busy, alien;
	} row[] = {
		{ANSWER_EXECUTED, 'G', true, false, false, false}, {ANSWER_EXECUTED, 'E', true, false, false, false},
		{ANSWER_EXECUTED, 'A', true, false, false, false}, {ANSWER_EXECUTED, 'R', true, false, false, false},
		{ANSWER_EXECUTED, 'B', false, true, true, false},  {ANSWER_EXECUTED, 'K', false, true, true, true},
		{ANSWER_EXECUTED, 'Q', false, true, false, false}, {ANSWER_EXECUTED, 'L', false, true, false, false},
		{ANSWER_EXECUTED, 'F', false, true, false, false}, {ANSWER_EXECUTED, 'M', false, true, false, false},
		{ANSWER_EXECUTED, 'N', false, true, false, false}, {ANSWER_REFUSED, 0, false, true, false, false},
		{ANSWER_UNKNOWN, 0, false, false, false, false},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct op *op = op_new(&ops, OP_ACQUIRE, lock);

		op_send_acquire(&ops, op, 2, 1, SPAN(""), 0);
		answered(op, 2, row[i].code, row[i].class);
		ck_assert_uint_eq(op->yes.bits, row[i].yes ? 4 : 0);
		ck_assert_uint_eq(op->no.bits, row[i].no ? 4 : 0);
		ck_assert_uint_eq(op->busy.bits, row[i].busy ? 4 : 0);
		ck_assert_uint_eq(op->alien.bits, row[i].alien ? 4 : 0);
		ck_assert_int_eq(op->votes.until[2].us == INSTANT_PAST.us, !row[i].yes);
	}
}
END_TEST

START_TEST(an_op_keeps_the_value_it_was_made_for)
{
	struct op *op = op_new(&ops, OP_RELEASE, lock);
	struct lease_value old = lock->lease.value;

	lock_new_value(&locks, lock);
	op_send_release(&ops, op, 0);
	ck_assert(span_equal(effects.item[0].call.value, (struct span){old.text, old.n}));
	ck_assert_uint_eq(op->value.ticket, old.ticket);
}
END_TEST

START_TEST(a_kept_key_is_not_put_back_and_a_renewed_one_is)
{
	struct op *leave = op_new(&ops, OP_LEAVE, lock), *renew = op_new(&ops, OP_RENEW, lock);

	leave->px_us = 1500;
	leave->others = mem_copy("d:1:0a d:1:0b", 14);
	op_send_leave(&ops, leave, 0);
	ck_assert(span_equal(effects.item[0].call.value, SPAN("d:1:0a")));
	ck_assert(span_equal(effects.item[0].call.prior, SPAN(" d:1:0b")));
	ck_assert_uint_eq(lock->lease.placed.bits, 0);
	ck_assert_int_eq(effects.item[0].call.px_ms, 2);
	op_send_extend(&ops, renew, 1, 99, instant_add(core.now, SEC));
	ck_assert_uint_eq(lock->lease.placed.bits, 2);
	ck_assert_int_gt(lock->lease.px_until.us, 112 * SEC);
	ck_assert(effects.item[1].call.create);
	ck_assert(span_equal(effects.item[1].call.new_value, effects.item[1].call.value));
	ck_assert_int_eq(effects.item[1].call.fence, 99);
}
END_TEST

START_TEST(slots_are_used_again_and_a_lock_is_referenced_while_an_op_runs)
{
	struct op *op[600];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 600; i++)
			op[i] = op_new(&ops, OP_RENEW, lock);
		ck_assert_uint_eq(lock->refs, 600);
		ck_assert_uint_eq(ops.live, 600);
		for (unsigned i = 0; i < 600; i++)
			for (unsigned j = i + 1; j < 600 && round == 0; j += 7)
				ck_assert_uint_ne(op[i]->slot, op[j]->slot);
		for (unsigned i = 0; i < 600; i++)
			op_free(&ops, op[i]);
		ck_assert_uint_eq(lock->refs, 0);
	}
	ck_assert_uint_eq(ops.slots, 1024);
}
END_TEST

Suite *op_suite(void)
{
	Suite *suite = suite_create("op");
	TCase *cases = tcase_create("op");

	tcase_add_checked_fixture(cases, lock_open, lock_close);
	tcase_add_test(cases, an_acquire_asks_for_lease_and_delay_and_votes_for_the_lease_alone);
	tcase_add_loop_test(cases, an_acquire_never_runs_when_the_lease_may_be_over_without_it, 0, 20);
	tcase_add_test(cases, each_answer_is_counted_once);
	tcase_add_test(cases, an_answer_is_granted_refused_queued_behind_wrong_type_or_unknown);
	tcase_add_loop_test(cases, a_grant_counts_only_where_the_store_is_joined, 0, 3);
	tcase_add_loop_test(cases, a_vote_that_is_heard_after_a_jump_ends_earlier_by_the_jump, 0, 2);
	tcase_add_test(cases, an_op_keeps_the_value_it_was_made_for);
	tcase_add_test(cases, a_kept_key_is_not_put_back_and_a_renewed_one_is);
	tcase_add_test(cases, slots_are_used_again_and_a_lock_is_referenced_while_an_op_runs);
	suite_add_tcase(suite, cases);
	return suite;
}
