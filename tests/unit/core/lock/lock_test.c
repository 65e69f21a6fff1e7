/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/lock/lock.c: the table of names and claims, by itself. */
#include "daemon/core/lock/lock.h"

#include "daemon/core/round/round.h"
#include "daemon/core/session/session.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct core core;
static struct lock_table table;
static struct session one, two;
static struct effects effects;

static void table_open(void)
{
	static const struct core_conf conf = {
		.nodes = 3, .host = "a host:with.odd_letters-and more than forty of them", .seed = {1, 2}};

	core_init(&core, &conf);
	effects_init(&effects);
	core.out = &effects;
	lock_table_init(&table, &core);
}

static void table_close(void)
{
	lock_table_release(&table);
	core_release(&core);
	effects_release(&effects);
}

static struct claim *claim_of(struct session *s, struct span owner)
{
	struct claim *c = claim_new(&table);

	c->session = s;
	claim_set_texts(c, owner, remark_of(NULL, 0, false));
	return c;
}

FIXTURE(.setup = table_open, .teardown = table_close)

TEST(a_name_is_one_lock)
{
	struct lock *l = lock_find_or_add(&table, SPAN("orders/42"));

	ck_assert_ptr_eq(lock_find_or_add(&table, SPAN("orders/42")), l);
	ck_assert_ptr_eq(lock_find(&table, SPAN("orders/42")), l);
	ck_assert_ptr_null(lock_find(&table, SPAN("orders/4")));
	ck_assert_ptr_ne(lock_find_or_add(&table, (struct span){"orders/42\0", 10}), l);
	ck_assert(lock_is_idle(l));
}

TEST(names_of_any_length_come_back_whole)
{
	char name[NAME_MAX_BYTES];

	memset(name, 'x', sizeof(name));
	for (size_t n = 1; n <= sizeof(name); n++) {
		struct lock *l = lock_find_or_add(&table, (struct span){name, n});

		ck_assert(span_equal(lock_name(l), (struct span){name, n}));
	}
	ck_assert_uint_eq(table.map.count, sizeof(name));
}

TEST(a_lock_is_dropped_when_nobody_names_it_any_more)
{
	struct lock *l = lock_find_or_add(&table, SPAN("a"));
	struct claim *c = claim_of(&one, SPAN(""));

	l->name.refs = 1;
	lock_drop_if_unused(&table, l);
	ck_assert_ptr_nonnull(lock_find(&table, SPAN("a")));
	l->name.refs = 0;
	c->lock = l;
	claim_begin_asking(&table, c);
	contender_enqueue(lock_contend(&table, l), c);
	lock_drop_if_unused(&table, l);
	ck_assert_ptr_nonnull(lock_find(&table, SPAN("a")));
	contender_dequeue(l->contender, c);
	claim_free(&table, c);
	l->contender->state = CONTENDER_HELD_ELSEWHERE;
	lock_drop_if_unused(&table, l);
	ck_assert_ptr_nonnull(lock_find(&table, SPAN("a")));
	l->contender->state = CONTENDER_IDLE;
	lock_drop_if_unused(&table, l);
	ck_assert_ptr_null(lock_find(&table, SPAN("a")));
	ck_assert_uint_eq(table.locks[0].live, 0);
	ck_assert_uint_eq(table.claims.live, 0);
}

TEST(a_name_has_a_contender_of_its_own_only_while_there_is_something_to_know)
{
	struct lock *l = lock_find_or_add(&table, SPAN("a"));
	struct claim *c = claim_of(&one, SPAN(""));

	ck_assert(contender_is_none(l->contender) && lock_is_idle(l) && !lock_is_taken(l));
	l->lease.state = LEASE_HELD;
	c->lock = l;
	claim_begin_asking(&table, c);
	contender_enqueue(lock_contend(&table, l), c);
	ck_assert_ptr_eq(lock_contend(&table, l), l->contender);
	ck_assert_ptr_eq(lock_of_contender(l->contender), l);
	lock_drop_if_unused(&table, l);
	ck_assert(!contender_is_none(l->contender));
	contender_dequeue(l->contender, c);
	l->contender->taught = true;
	lock_drop_if_unused(&table, l);
	ck_assert(!contender_is_none(l->contender));
	l->contender->taught = false;
	l->contender->handed_since.us = 1;
	lock_drop_if_unused(&table, l);
	ck_assert(!contender_is_none(l->contender));
	l->contender->handed_since.us = 0;
	l->contender->want_since.us = 1;
	lock_drop_if_unused(&table, l);
	ck_assert(!contender_is_none(l->contender));
	l->contender->want_since.us = 0;
	l->contender->handoffs = 1;
	lock_drop_if_unused(&table, l);
	ck_assert(!contender_is_none(l->contender));
	l->contender->handoffs = 0;
	lock_drop_if_unused(&table, l);
	ck_assert(contender_is_none(l->contender));
	ck_assert_uint_eq(table.contenders.live, 0);
	ck_assert_ptr_eq(lock_find(&table, SPAN("a")), l);
	claim_free(&table, c);
}

/* Each of these keeps the renewal, by itself. */
static void lease_is_busy(struct lease *x, unsigned with)
{
	static struct round round;
	static struct pending pending;

	x->state = with == 1 ? LEASE_ADOPTING : LEASE_HELD;
	x->at_risk = with == 2;
	x->renewal->round = with == 3 ? &round : NULL;
	x->renewal->entry.waits = with == 4;
	x->renewal->gaps = with == 5 ? nodeset_of(2) : NODESET_NONE;
	x->renewal->adoption = with == 7 ? malloc(1) : NULL;
	TAILQ_INIT(&x->renewal->extends);
	if (with == 6)
		TAILQ_INSERT_TAIL(&x->renewal->extends, &pending, in_lease);
}

TEST(a_lease_has_a_renewal_of_its_own_until_it_is_at_rest)
{
	struct lock *l = lock_find_or_add(&table, SPAN("a"));
	struct renewal *b;

	l->lease.state = LEASE_HELD;
	ck_assert(renewal_is_none(l->lease.renewal) && lease_is_at_rest(&l->lease));
	b = lease_renewal(&table, &l->lease);
	ck_assert_ptr_eq(b->lease, &l->lease);
	for (unsigned with = 1; with <= 7; with++) {
		lease_is_busy(&l->lease, with);
		lock_drop_if_unused(&table, l);
		ck_assert_ptr_eq(l->lease.renewal, b);
		free(b->adoption);
	}
	lease_is_busy(&l->lease, 0);
	lock_drop_if_unused(&table, l);
	ck_assert(renewal_is_none(l->lease.renewal));
	ck_assert_uint_eq(table.renewals.live, 0);
}

/* The cost grows linearly with the number of names: otherwise this would take minutes, and the test would time out. */
TEST(a_table_of_many_names_is_released_without_delay)
{
	for (uint64_t i = 0; i < 300000; i++)
		lock_find_or_add(&table, (struct span){(const char *)&i, sizeof(i)});
	ck_assert_uint_eq(table.map.count, 300000);
}

/* The text of the value, ended by a NUL. */
static void value_copy(const struct lease_value *value, char out[VALUE_MAX])
{
	struct span text = value_in_text(&core, value);

	ck_assert_uint_lt(text.n, VALUE_MAX);
	memcpy(out, text.p, text.n);
	out[text.n] = '\0';
}

TEST(a_value_is_daemon_number_and_32_hex_digits_and_never_comes_twice)
{
	char last[VALUE_MAX] = "", text[VALUE_MAX];
	struct lease_value value;

	for (unsigned i = 1; i < 300; i++) {
		char *rest;

		lock_value_make(&table, 0, &value);
		value_copy(&value, text);
		ck_assert_str_ne(text, last);
		strcpy(last, text);
		ck_assert(span_starts(span_of(text), span_of(core.daemon_id)));
		ck_assert_uint_eq(strtoul(text + strlen(core.daemon_id) + 1, &rest, 10), i);
		ck_assert_int_eq(*rest, ':');
		ck_assert_uint_eq(strspn(rest + 1, "0123456789abcdef"), 32);
		ck_assert_uint_eq(strlen(rest + 1), 32);
		value_copy(&value, text);
		ck_assert_str_eq(text, last);
	}
}

TEST(a_value_shows_all_of_its_number_and_of_its_secret)
{
	struct lease_value value = {.number = UINT64_MAX, .secret = {UINT64_C(0xfedcba9876543210), UINT64_C(0x8000000000000001)}};
	char text[VALUE_MAX];

	value_copy(&value, text);
	ck_assert_str_eq(text + strlen(core.daemon_id), ":18446744073709551615:0123456789abcdef1000000000000008");
}

TEST(a_ticket_is_a_moment_the_daemon_and_a_number)
{
	struct stamp ticket = {.us = 1234567, .sequence = UINT64_MAX};
	struct span text = stamp_in_text(&core, &ticket);

	ck_assert(span_starts(text, SPAN("0000000001234567:")));
	ck_assert(span_equal((struct span){text.p + 17, strlen(core.daemon_id)}, span_of(core.daemon_id)));
	ck_assert(span_equal((struct span){text.p + 17 + strlen(core.daemon_id), 21}, SPAN(":18446744073709551615")));
	ck_assert_uint_eq(text.n, 17 + strlen(core.daemon_id) + 21);
}

TEST(the_moment_of_a_ticket_has_16_characters_or_more)
{
	static const int64_t moments[] = {1, 9, 10, 99999, 100000, INT64_C(999999999999999), INT64_C(1000000000000000), INT64_C(1785000000123456),
	                                  INT64_C(9999999999999999), INT64_C(10000000000000000), INT64_MAX, -1, -10, INT64_C(-99999999999999),
	                                  INT64_C(-999999999999999), INT64_C(-1000000000000000), INT64_MIN};

	for (unsigned i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
		struct stamp ticket = {.us = moments[i], .sequence = i * UINT64_C(987654321)};
		struct span text = stamp_in_text(&core, &ticket);
		char expected[VALUE_MAX];

		snprintf(expected, sizeof(expected), "%016" PRId64 ":%s:%" PRIu64, ticket.us, core.daemon_id, ticket.sequence);
		ck_assert_msg(span_equal(text, span_of(expected)), "%.*s instead of %s", (int)text.n, text.p, expected);
	}
}

TEST(a_new_value_of_a_lease_begins_anew)
{
	struct placed nowhere = placed_nowhere((struct instant){7});
	struct lock *l = lock_find_or_add(&table, SPAN("a"));
	struct lease_value value;

	l->lease.placed.nodes = l->lease.placed.unanswered = l->lease.placed.renewal_sent = lease_renewal(&table, &l->lease)->gaps = nodeset_all(3);
	l->lease.recorded = true;
	lock_contend(&table, l)->handoffs = 1;
	l->contender->want_since.us = 7;
	lock_value_make(&table, 0, &value);
	lock_begin_lease(l, &value, &nowhere);
	ck_assert(!nodeset_any(l->lease.placed.nodes) && !nodeset_any(l->lease.placed.unanswered) && !nodeset_any(l->lease.placed.renewal_sent));
	ck_assert_int_eq(l->lease.placed.since.us, 7);
	ck_assert(!nodeset_any(l->lease.renewal->gaps) && !l->lease.recorded && contender_is_blank(l->contender));
	ck_assert_uint_eq(l->lease.value.number, value.number);
}

TEST(a_loss_is_told_a_twentieth_before_the_deadline_within_5_and_250_ms)
{
	struct lock *l = lock_find_or_add(&table, SPAN("a"));

	ck_assert_int_eq(loss_lead_us(SEC), 50 * MSEC);
	ck_assert_int_eq(loss_lead_us(50 * MSEC), 5 * MSEC);
	ck_assert_int_eq(loss_lead_us(30 * SEC), 250 * MSEC);
	votes_clear(l->lease.votes, core.conf.nodes);
	l->lease.ttl_us = SEC;
	l->lease.votes[0].us = l->lease.votes[2].us = 7 * SEC;
	ck_assert_int_eq(lease_loss_due(&l->lease, core.conf.nodes).us, 7 * SEC - 50 * MSEC);
}

TEST(waiters_are_queued_in_order_and_the_waiting_ones_are_counted)
{
	struct lock *l = lock_find_or_add(&table, SPAN("a"));
	struct claim *c[3];

	for (unsigned i = 0; i < 3; i++) {
		c[i] = claim_of(&one, SPAN(""));
		c[i]->lock = l;
		c[i]->patient = i != 1;
		claim_begin_asking(&table, c[i]);
		contender_enqueue(lock_contend(&table, l), c[i]);
		ck_assert_int_eq(c[i]->state, CLAIM_WAITING);
	}
	ck_assert_uint_eq(l->contender->patient, 2);
	contender_dequeue(l->contender, c[0]);
	ck_assert_uint_eq(l->contender->patient, 1);
	ck_assert_ptr_eq(TAILQ_FIRST(&l->contender->waiters), c[1]);
	contender_dequeue(l->contender, c[1]);
	ck_assert_uint_eq(l->contender->patient, 1);
	ck_assert_ptr_eq(TAILQ_FIRST(&l->contender->waiters), c[2]);
	claim_free(&table, c[0]);
	claim_free(&table, c[1]);
}

TEST(an_owner_is_a_session_and_a_text)
{
	struct lock *l = lock_find_or_add(&table, SPAN("a"));
	struct claim *x = claim_of(&one, SPAN("x")), *none = claim_of(&one, SPAN("")), *other = claim_of(&two, SPAN("x"));

	ck_assert(claim_same_owner(x, x));
	ck_assert(!claim_same_owner(x, none));
	ck_assert(!claim_same_owner(x, other));
	l->lease.state = LEASE_HELD;
	l->holder = x;
	other->lock = l;
	lock_add_loss(&table, other);
	ck_assert_ptr_eq(lock_claim_of(l, &one, SPAN("x")), x);
	ck_assert_ptr_eq(lock_claim_of(l, &two, SPAN("x")), other);
	ck_assert_ptr_null(lock_claim_of(l, &one, SPAN("")));
	ck_assert_ptr_null(lock_claim_of(l, &two, SPAN("")));
	claim_free(&table, none);
}

static bool remark_is(struct remark a, struct remark b)
{
	return span_equal(a.note, b.note) && span_equal(a.trace, b.trace);
}

TEST(a_claim_keeps_its_owner_and_its_remark_and_the_remark_may_change)
{
	static const char *const texts[] = {"", "a", "a text that is a little longer"};

	static const char *const traces[] = {"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};

	for (unsigned i = 0; i < 108; i++) {
		struct span owner = span_of(texts[i % 3]);
		struct remark remark = {span_of(texts[i / 3 % 3]), span_of(traces[i / 27 % 2])}, other = {span_of(texts[i / 9 % 3]), span_of(traces[i / 54])};
		struct claim *c = claim_new(&table);

		claim_set_texts(c, owner, remark);
		ck_assert(span_equal(claim_owner(c), owner) && remark_is(claim_remark(c), remark));
		claim_set_remark(c, other);
		ck_assert(span_equal(claim_owner(c), owner) && remark_is(claim_remark(c), other));
		claim_free(&table, c);
	}
}

TEST(every_loss_has_its_word)
{
	static const char *const word[] = {"quorum", "expired", "evicted", "broken", "idle", "shutdown"};

	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		ck_assert_str_eq(loss_word((enum loss)i), word[i]);
}
