/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/round/round.c, round.c, round.c, engine_data.c: the accounting of the calls and votes of one question, by itself. */
#include "daemon/core/round/round.h"

#include "daemon/core/lock/lock.h"
#include "daemon/core/round/engine_data.h"

#include <check.h>

static struct core core;
static struct members members;
static struct lock_table locks;
static struct call_table calls;
static struct rounds rounds;
static struct releases releases;
static struct effects effects;
static struct lock *lock;

/* A new value, that stands nowhere. */
static void lease_anew(void)
{
	struct placed nowhere = placed_nowhere(core.now);
	struct lease_value value;

	lock_value_make(&locks, 0, &value);
	lock_begin_lease(lock, &value, &nowhere);
}

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
	call_table_init(&calls, &core, &members);
	rounds_init(&rounds, &calls);
	releases_init(&releases, &calls);
	lock = lock_find_or_add(&locks, SPAN("name"));
	lock->lease.ttl_us = 10 * SEC;
	lock->lease.delay_us = 2 * SEC;
	lease_anew();
}

static void lock_close(void)
{
	rounds_release(&rounds, &locks.pendings);
	releases_release(&releases, &locks.pendings);
	call_table_release(&calls);
	lock_table_release(&locks);
	core_release(&core);
	effects_release(&effects);
}

static struct round *round_begin(enum question question)
{
	return round_new(&rounds, question, &lock->name, &lock->lease);
}

/* The round of the answer; NULL: no call was open. */
static struct round *round_answer(const struct answer *a)
{
	struct calls *c = calls_answered(&calls, a);

	if (c)
		round_count(round_of_calls(c), a, members.node[a->node].state == MEMBER_JOINED);
	return c ? round_of_calls(c) : NULL;
}

static struct round *answered(struct round *r, unsigned node, char code, enum answer_class class)
{
	struct answer a = {.call = r->calls.slot, .node = node, .class = class, .code = code, .fence = 77, .pttl_ms = 500};

	return round_answer(&a);
}

FIXTURE(.setup = lock_open, .teardown = lock_close)

TEST(an_acquire_asks_for_lease_and_delay_and_votes_for_the_lease_alone)
{
	struct round *r = round_begin(QUESTION_ACQUIRE);
	const struct call *c;

	ask_acquire(&calls, r, 1, SPAN("d:1:0c"), 12345, SPAN(""), 0);
	c = &effects.item[0].call;
	ck_assert_int_eq(c->kind, CALL_ACQUIRE);
	ck_assert_uint_eq(c->id, r->calls.slot);
	ck_assert_uint_eq(c->node, 1);
	ck_assert_int_eq(c->px_ms, 12000);
	ck_assert_int_eq(c->fence, 12345);
	ck_assert_int_eq(c->range, 0);
	ck_assert_int_eq(c->not_after_ms, 0);
	ck_assert(span_equal(c->name, SPAN("name")));
	ck_assert_uint_eq(lock->lease.placed.nodes.bits, 2);
	core.now = (struct instant){103 * SEC};
	ck_assert_ptr_eq(answered(r, 1, 'G', ANSWER_EXECUTED), r);
	ck_assert_uint_eq(r->granted.bits, 2);
	ck_assert_int_eq(r->base[1], 77);
	ck_assert_int_eq(r->votes.until[1].us, 109897 * MSEC);
}

/* A slow answer shows the clock only roughly. By one bound the call is in time, by the other it is too late for the lease. */
LOOP_TEST(an_acquire_never_runs_when_the_lease_may_be_over_without_it, 20)
{
	struct round *r = round_begin(QUESTION_ACQUIRE);
	const struct call *c;

	members.node[1].clock = (struct member_clock){.known = true, .low = 400 * SEC, .high = 400 * SEC + _i * SEC, .at = core.now};
	ask_acquire(&calls, r, 1, SPAN("d:1:0c"), 12345, SPAN(""), 0);
	c = &effects.item[0].call;
	ck_assert_int_gt(c->not_after_ms, 500050);
	ck_assert_int_le(c->not_after_ms, _i < 9 ? 500051 + _i * 1000 : 509897);
}

TEST(each_answer_is_counted_once)
{
	struct round *r = round_begin(QUESTION_ACQUIRE);

	ask_acquire(&calls, r, 0, SPAN("d:1:0c"), 1, SPAN(""), 0);
	ck_assert_uint_eq(r->calls.open.bits, 1);
	ck_assert_ptr_eq(answered(r, 0, 'G', ANSWER_EXECUTED), r);
	ck_assert_uint_eq(r->calls.open.bits, 0);
	ck_assert_ptr_null(answered(r, 0, 'G', ANSWER_EXECUTED));
	ck_assert_ptr_null(answered(r, 1, 'G', ANSWER_EXECUTED));
}

LOOP_TEST(a_grant_counts_only_where_the_store_is_joined, 3)
{
	static const char codes[] = "GAE";
	struct round *r = round_begin(QUESTION_ACQUIRE);

	members.node[0].state = MEMBER_PROBING;
	ask_acquire(&calls, r, 0, SPAN("d:1:0c"), 12345, SPAN(""), 0);
	answered(r, 0, codes[_i], ANSWER_EXECUTED);
	ck_assert_uint_eq(r->granted.bits, codes[_i] == 'E');
	ck_assert_uint_eq(r->refused.bits, 0);
	ck_assert_uint_eq(lock->lease.placed.nodes.bits, 1);
	round_free(&rounds, r);
}

LOOP_TEST(a_vote_that_is_heard_after_a_jump_ends_earlier_by_the_jump, 2)
{
	struct round *r = round_begin(QUESTION_ACQUIRE);
	struct answer a = {.call = r->calls.slot, .node = 1, .code = 'G', .fence = 77, .server_us = 500 * SEC};
	int64_t ahead = _i ? 3 * SEC : 0;

	members.node[1].connected = true;
	members.node[1].clock = (struct member_clock){.known = true, .low = 400 * SEC + ahead, .high = 400 * SEC + ahead};
	ask_acquire(&calls, r, 1, SPAN("d:1:0c"), 12345, SPAN(""), 0);
	core.now.us += 2 * MSEC;
	members.node[1].clock.at = members.node[1].clock.sure = core.now;
	round_answer(&a);
	ck_assert_int_eq(r->votes.until[1].us, vote_until((struct instant){100 * SEC - ahead}, 10 * SEC).us);
	round_free(&rounds, r);
}

TEST(an_answer_is_granted_refused_queued_behind_wrong_type_or_unknown)
{
	static const struct {
		enum answer_class class;
		char code;
		bool granted, refused, held, wrong_type;
	} row[] = {
		{ANSWER_EXECUTED, 'G', true, false, false, false}, {ANSWER_EXECUTED, 'E', true, false, false, false},
		{ANSWER_EXECUTED, 'A', true, false, false, false},
		{ANSWER_EXECUTED, 'B', false, true, true, false},  {ANSWER_EXECUTED, 'K', false, true, true, true},
		{ANSWER_EXECUTED, 'Q', false, true, false, false}, {ANSWER_EXECUTED, 'L', false, true, false, false},
		{ANSWER_EXECUTED, 'F', false, true, false, false}, {ANSWER_EXECUTED, 'M', false, true, false, false},
		{ANSWER_EXECUTED, 'N', false, true, false, false}, {ANSWER_REFUSED, 0, false, true, false, false},
		{ANSWER_UNKNOWN, 0, false, false, false, false},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct round *r = round_begin(QUESTION_ACQUIRE);

		ask_acquire(&calls, r, 2, SPAN("d:1:0c"), 1, SPAN(""), 0);
		answered(r, 2, row[i].code, row[i].class);
		ck_assert_uint_eq(r->granted.bits, row[i].granted ? 4 : 0);
		ck_assert_uint_eq(r->refused.bits, row[i].refused ? 4 : 0);
		ck_assert_uint_eq(r->taken.bits, row[i].held ? 4 : 0);
		ck_assert_uint_eq(r->wrong_type.bits, row[i].wrong_type ? 4 : 0);
		ck_assert_int_eq(r->votes.until[2].us == INSTANT_PAST.us, !row[i].granted);
	}
}

TEST(a_release_says_what_a_store_did_had_not_or_may_have_done)
{
	static const struct {
		enum answer_class class;
		char code;
		bool done, absent, unconfirmed;
	} row[] = {
		{ANSWER_EXECUTED, 'R', true, false, false}, {ANSWER_EXECUTED, 'N', false, true, false}, {ANSWER_EXECUTED, 'Q', false, false, true},
		{ANSWER_REFUSED, 0, false, false, true},    {ANSWER_UNKNOWN, 0, false, false, true},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct release *r = release_of_value(&releases, RELEASE_DELETE, &lock->name, &lock->lease.value);
		struct answer a = {.call = r->calls.slot, .node = 2, .class = row[i].class, .code = row[i].code};

		release_enlist(&releases, r, nodeset_of(2), core.now);
		ck_assert_uint_eq(r->absent.bits, 3);
		release_send_to(&releases, r, 2, release_text(&releases, r));
		ck_assert_ptr_eq(calls_answered(&calls, &a), &r->calls);
		release_note(&releases, r, &a);
		ck_assert_uint_eq(r->done.bits, row[i].done ? 4 : 0);
		ck_assert_uint_eq(r->absent.bits, row[i].absent ? 7 : 3);
		ck_assert_uint_eq(r->unconfirmed.bits, row[i].unconfirmed ? 4 : 0);
		ck_assert_uint_eq(r->unsure.bits, row[i].class == ANSWER_UNKNOWN ? 4 : 0);
		release_delist(&releases, r);
		release_free(&releases, r);
	}
}

TEST(a_release_keeps_the_value_it_was_made_for)
{
	struct release *r = release_of_value(&releases, RELEASE_DELETE, &lock->name, &lock->lease.value);
	struct lease_value old = lock->lease.value;

	lease_anew();
	release_send_to(&releases, r, 0, release_text(&releases, r));
	ck_assert(span_equal(effects.item[0].call.value, value_in_text(&core, &old)));
	ck_assert_uint_eq(r->value.number, old.number);
}

TEST(a_kept_key_is_not_put_back_and_a_renewed_one_is)
{
	struct release *leave = release_of_value(&releases, RELEASE_LEAVE, &lock->name, &lock->lease.value);
	struct round *renew = round_begin(QUESTION_RENEW);

	leave->px_us = 1500;
	lock_value_make(&locks, 0, &leave->left);
	release_send_to(&releases, leave, 0, release_text(&releases, leave));
	ck_assert(span_equal(effects.item[0].call.value, value_in_text(&core, &lock->lease.value)));
	ck_assert(span_equal(effects.item[0].call.new_value, value_in_text(&core, &leave->left)));
	ck_assert_uint_eq(lock->lease.placed.nodes.bits, 0);
	ck_assert_int_eq(effects.item[0].call.px_ms, 2);
	ck_assert(!effects.item[0].call.create);
	ask_extend(&calls, renew, 1, SPAN("d:1:0c"), 99, instant_add(core.now, SEC));
	ck_assert_uint_eq(lock->lease.placed.nodes.bits, 2);
	ck_assert_int_gt(lock->lease.placed.until.us, 112 * SEC);
	ck_assert(effects.item[1].call.create);
	ck_assert(span_equal(effects.item[1].call.value, SPAN("d:1:0c")));
	ck_assert(span_equal(effects.item[1].call.new_value, SPAN("d:1:0c")));
	ck_assert_int_eq(effects.item[1].call.fence, 99);
}

TEST(slots_are_used_again_and_a_name_is_referenced_while_calls_live)
{
	struct round *r[600];

	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < 600; i++)
			r[i] = round_begin(QUESTION_RENEW);
		ck_assert_uint_eq(lock->name.refs, 600);
		ck_assert_uint_eq(calls.live, 600);
		for (unsigned i = 0; i < 600; i++)
			for (unsigned j = i + 1; j < 600 && k == 0; j += 7)
				ck_assert_uint_ne(r[i]->calls.slot, r[j]->calls.slot);
		for (unsigned i = 0; i < 600; i++)
			round_free(&rounds, r[i]);
		ck_assert_uint_eq(lock->name.refs, 0);
	}
	ck_assert_uint_eq(calls.slots, 1024);
}
