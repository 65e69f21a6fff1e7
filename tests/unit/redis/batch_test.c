/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/batch.c: calls to commands, to the letter. */
#include "daemon/redis/batch.h"

#include <check.h>

static struct script_keys keys;
static struct batch batch;
static struct buf out;

static void setup(void)
{
	script_keys_init(&keys, "lock:", 60 * SEC, 0, "d1");
	batch_init(&batch);
	buf_init(&out);
}

static void teardown(void)
{
	script_keys_release(&keys);
	batch_release(&batch);
	buf_release(&out);
}

static struct call call_of(enum call_kind kind, uint64_t id, struct span name)
{
	return (struct call){
		.id = id,
		.kind = kind,
		.name = name,
		.value = SPAN("d1:7:00ff"),
		.new_value = SPAN("d2:8:00ff"),
		.marker = SPAN("j|m"),
		.new_marker = SPAN("j|n"),
		.px_ms = 9000,
		.fence = 1761234567890123,
		.range = 3,
		.beyond = true,
		.not_after_ms = 1761234567890,
		.create = true,
		.ticket = SPAN("ticket"),
		.ticket_ms = 3000,
		.reserve_ms = 20,
		.seen = 99,
	};
}

static void add(enum call_kind kind, uint64_t id)
{
	struct call call = call_of(kind, id, SPAN("n"));

	batch_add(&batch, &keys, &call, id);
}

static void check_out(const char *sha, struct span text, struct span expected)
{
	buf_clear(&out);
	batch_write(&batch, &keys, sha, text, &out);
	ck_assert_msg(span_equal((struct span){buf_begin(&out), buf_length(&out)}, expected), "%.*s", (int)buf_length(&out),
		      buf_begin(&out));
}

#define HEAD "$19\r\nredlockd:lock:!meta\r\n$20\r\nredlockd:lock:!fence\r\n$20\r\nredlockd:lock:!waits\r\n"
#define WAIT "$6\r\nticket\r\n$4\r\n3000\r\n$2\r\n20\r\n"
#define SKEW "$8\r\n60000000\r\n"
#define VALUE "$9\r\nd1:7:00ff\r\n"
#define FENCE "$16\r\n1761234567890123\r\n"
#define AFTER "$13\r\n1761234567890\r\n"

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_batch_of_each_kind_is_written_to_the_letter)
{
	struct call acquire = call_of(CALL_ACQUIRE, 1, (struct span){"a\0\r\n", 4}), extend = call_of(CALL_EXTEND, 2, SPAN("e")),
		    release = call_of(CALL_RELEASE, 3, SPAN("r"));

	batch_add(&batch, &keys, &acquire, 1);
	batch_add(&batch, &keys, &extend, 2);
	batch_add(&batch, &keys, &release, 3);
	check_out("SHA", SPAN("text"),
		  SPAN("*29\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n6\r\n" HEAD "$6\r\nlock:r\r\n$9\r\nlock:a\0\r\n\r\n$6\r\nlock:e\r\n"
		       "$3\r\nj|m\r\n" SKEW "$2\r\n99\r\n$1\r\n1\r\n$1\r\n1\r\n" VALUE AFTER FENCE "$16\r\n1761234567890126\r\n"
		       "$34\r\nt1761234567890 3000 20\n0 3 ticket\n\r\n" VALUE "$4\r\n9000\r\n"
		       "$1\r\ne\r\n" VALUE "$9\r\nd2:8:00ff\r\n$4\r\n9000\r\n" FENCE "$1\r\n1\r\n" AFTER "$1\r\n1\r\n"));
	ck_assert_uint_eq(batch_entry(&batch, 0)->id, 3);
	ck_assert_uint_eq(batch_entry(&batch, 1)->id, 1);
	ck_assert_uint_eq(batch_entry(&batch, 2)->id, 2);
}

/* An acquire of one token without a ticket, a renewal, a release: what they have in common stands in front of the first. */
static struct call plain(enum call_kind kind, uint64_t id)
{
	struct call call = call_of(kind, id, SPAN("n"));

	call.range = 0;
	call.beyond = false;
	call.new_value = call.value;
	if (kind == CALL_ACQUIRE)
		call.ticket = SPAN("");
	return call;
}

static void add_plain(enum call_kind kind, uint64_t id)
{
	struct call call = plain(kind, id);

	batch_add(&batch, &keys, &call, id);
}

#define KEY "$6\r\nlock:n\r\n"

TEST(the_key_of_a_slot_is_no_key_of_a_lock)
{
	static const char *const name[] = {SLOT_PREFIX "a#0", "\001\001s:a#0", "\001\001"};

	for (unsigned i = 0; i < 3; i++) {
		struct call call = call_of(CALL_LOOK, i + 1, span_of(name[i]));

		batch_add(&batch, &keys, &call, i + 1);
	}
	check_out("SHA", SPAN("text"),
		  SPAN("*17\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n6\r\n" HEAD
		       "$19\r\nredlockd:lock:s:a#0\r\n$11\r\nlock:\001s:a#0\r\n$6\r\nlock:\001\r\n$3\r\nj|m\r\n" SKEW "$2\r\n99\r\n$1\r\n0\r\n$1\r\n0\r\n"
		       "$1\r\nl\r\n$1\r\nl\r\n$1\r\nl\r\n"));
}

/* A plain acquire of a name of its own. */
static struct call acquire_of(uint64_t id, const char *name, int64_t fence, int64_t range)
{
	struct call call = plain(CALL_ACQUIRE, id);

	call.name = span_of(name);
	call.fence = fence;
	call.range = range;
	batch_add(&batch, &keys, &call, id);
	return call;
}

static struct span written(void)
{
	buf_clear(&out);
	batch_write(&batch, &keys, "SHA", SPAN(""), &out);
	return (struct span){buf_begin(&out), buf_length(&out)};
}

static bool has(struct span text, struct span part)
{
	return memmem(text.p, text.n, part.p, part.n);
}

TEST(acquires_say_the_first_proposal_and_the_last_with_its_range)
{
	acquire_of(1, "a", 100, 5);
	acquire_of(2, "b", 106, 0);
	acquire_of(3, "c", 200, 1);
	ck_assert(has(written(), SPAN("$3\r\n100\r\n$3\r\n201\r\n$40\r\nt1761234567890 3000 20\n0 5 \n6 0 \n100 1 \n\r\n")));
}

/* The second one and the last: their proposals do not follow, or there is none. */
TEST(an_acquire_whose_proposal_does_not_follow_takes_the_long_way)
{
	acquire_of(1, "a", 100, 5);
	acquire_of(2, "b", 105, 0);
	acquire_of(3, "c", 106, 0);
	acquire_of(4, "d", 0, 0);
	ck_assert_uint_eq(batch.part[BATCH_ACQUIRES].count, 2);
	ck_assert_uint_eq(batch_entry(&batch, 2)->id, 2);
	ck_assert_uint_eq(batch_entry(&batch, 3)->id, 4);
}

TEST(acquires_are_over_when_the_first_of_them_is)
{
	struct call call = plain(CALL_ACQUIRE, 2);

	acquire_of(1, "a", 100, 0);
	call.name = SPAN("b");
	call.fence = 101;
	call.not_after_ms--;
	batch_add(&batch, &keys, &call, 2);
	call.id = 3;
	call.name = SPAN("c");
	call.fence = 102;
	call.not_after_ms = 0;
	batch_add(&batch, &keys, &call, 3);
	ck_assert(has(written(), SPAN("$13\r\n1761234567889\r\n$3\r\n100\r\n")));
	ck_assert(has(written(), SPAN("t1761234567890 3000 20\n0 0 \nt1761234567889 3000 20\n")));
	ck_assert(has(written(), SPAN("\nt0 3000 20\n")));
}

/* The order of two calls about one name is that in which they were added. */
TEST(calls_about_one_name_keep_their_order)
{
	static const struct {
		enum call_kind kind;
		enum batch_part part;
	} row[] = {{CALL_RELEASE, BATCH_RELEASES}, {CALL_RELEASE, BATCH_OTHERS}, {CALL_ACQUIRE, BATCH_OTHERS}, {CALL_RELEASE, BATCH_OTHERS},
		   {CALL_EXTEND, BATCH_OTHERS}};
	unsigned count[BATCH_PARTS] = {0};

	for (unsigned i = 0; i < 5; i++) {
		struct call call = plain(row[i].kind, i);

		batch_add(&batch, &keys, &call, 7);
		count[row[i].part]++;
		for (unsigned p = 0; p < BATCH_PARTS; p++)
			ck_assert_uint_eq(batch.part[p].count, count[p]);
	}
	batch_reset(&batch);
	add_plain(CALL_RELEASE, 7);
	add_plain(CALL_ACQUIRE, 7);
	add_plain(CALL_ACQUIRE, 7);
	ck_assert_uint_eq(batch.part[BATCH_ACQUIRES].count, 1);
	ck_assert_uint_eq(batch.part[BATCH_OTHERS].count, 1);
}

/* Does a renewal after another one, which differs from it in one field, say its terms anew? */
TEST(terms_are_said_anew_where_a_renewal_has_others_and_looks_at_them)
{
	static const struct {
		const char *what;
		int64_t px_ms, not_after_ms;
		bool create, again;
	} row[] = {
		{"the same", 9000, 1761234567890, true, false},
		{"another TTL", 9001, 1761234567890, true, true},
		{"one that may set the key, another end", 9000, 0, true, true},
		{"one that may not", 9000, 0, false, false},
		{"one that may not, another TTL", 1, 0, false, true},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct call call = plain(CALL_EXTEND, 2);
		unsigned words;

		batch_reset(&batch);
		add_plain(CALL_EXTEND, 1);
		words = batch.words + 3;
		call.px_ms = row[i].px_ms;
		call.not_after_ms = row[i].not_after_ms;
		call.create = row[i].create;
		batch_add(&batch, &keys, &call, 2);
		ck_assert_msg(batch.words == words + (row[i].again ? 3 : 0), "%s", row[i].what);
	}
}

/* What makes a call one of the uncommon kind: see lua/prelude.lua. */
TEST(a_call_that_needs_more_says_more)
{
	struct call acquire = plain(CALL_ACQUIRE, 1), extend = plain(CALL_EXTEND, 1), release = plain(CALL_RELEASE, 1), call[4];
	const char op[] = "seeR";

	call[0] = acquire;
	call[1] = call[2] = extend;
	call[3] = release;
	call[0].form = call[3].form = FORM_SHARED;
	call[1].beyond = true;
	call[2].exact = true;
	for (unsigned i = 0; i < 4; i++) {
		batch_add(&batch, &keys, &call[i], 1);
		ck_assert_int_eq(batch_entry(&batch, i)->op, op[i]);
	}
	ck_assert(!batch.termed);
}

TEST(probe_and_join_are_written_to_the_letter)
{
	add(CALL_PROBE, 1);
	check_out("SHA", SPAN(""), SPAN("*7\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n3\r\n" HEAD "$2\r\nd1\r\n"));
	batch_reset(&batch);
	add(CALL_MARK, 2);
	check_out(NULL, SPAN("text"),
		  SPAN("*11\r\n$4\r\nEVAL\r\n$4\r\ntext\r\n$1\r\n3\r\n" HEAD "$3\r\nj|m\r\n$3\r\nj|n\r\n" SKEW "$16\r\n1761234567890123\r\n"
		       "$13\r\n1761234567890\r\n"));
}

TEST(numbers_are_written_whole_at_both_ends_of_their_range)
{
	struct call call = call_of(CALL_ACQUIRE, 1, SPAN(""));

	call.px_ms = INT64_MAX;
	call.fence = INT64_MIN;
	call.range = 0;
	call.not_after_ms = -1;
	call.form = FORM_SHARED;
	batch_add(&batch, &keys, &call, 1);
	ck_assert(has(written(),
		SPAN("$1\r\ns\r\n" VALUE "$20\r\n-9223372036854775808\r\n$1\r\n0\r\n$19\r\n9223372036854775807\r\n$2\r\n-1\r\n" WAIT)));
}

TEST(calls_under_one_marker_share_a_batch_and_others_do_not)
{
	struct call same = call_of(CALL_EXTEND, 1, SPAN("x")), other = same, release = call_of(CALL_RELEASE, 2, SPAN("x")),
		    probe = call_of(CALL_PROBE, 3, SPAN("")), join = call_of(CALL_MARK, 3, SPAN(""));

	other.marker = SPAN("j|o");
	release.marker = SPAN("");
	ck_assert(batch_accepts(&batch, &probe));
	add(CALL_ACQUIRE, 1);
	ck_assert(batch_accepts(&batch, &same));
	ck_assert(!batch_accepts(&batch, &other));
	ck_assert(batch_accepts(&batch, &release));
	ck_assert(!batch_accepts(&batch, &probe));
	ck_assert(!batch_accepts(&batch, &join));
	batch_reset(&batch);
	batch_add(&batch, &keys, &release, 2);
	ck_assert(batch_accepts(&batch, &other));
	batch_add(&batch, &keys, &other, 3);
	ck_assert(!batch_accepts(&batch, &same));
	ck_assert(batch_accepts(&batch, &release));
	batch_reset(&batch);
	add(CALL_PROBE, 1);
	ck_assert(!batch_accepts(&batch, &release));
}

TEST(a_batch_holds_256_calls)
{
	struct call call = call_of(CALL_RELEASE, 1, SPAN("x"));
	unsigned i;

	for (i = 0; i < 256; i++) {
		ck_assert(batch_accepts(&batch, &call));
		batch_add(&batch, &keys, &call, i);
	}
	ck_assert(!batch_accepts(&batch, &call));
}

TEST(an_entry_taken_from_another_batch_is_the_same)
{
	struct batch whole = batch;
	unsigned i;

	add(CALL_ACQUIRE, 1);
	acquire_of(4, "n", INT64_MAX - 9, 6);
	add(CALL_RELEASE, 2);
	add(CALL_EXTEND, 3);
	whole = batch;
	batch_init(&batch);
	for (i = 0; i < 4; i++)
		batch_take(&batch, &whole, i);
	buf_clear(&out);
	batch_write(&whole, &keys, "SHA", SPAN(""), &out);
	{
		struct buf expected = out;

		buf_init(&out);
		check_out("SHA", SPAN(""), (struct span){buf_begin(&expected), buf_length(&expected)});
		buf_release(&expected);
	}
	ck_assert_uint_eq(batch_entry(&batch, 3)->id, 3);
	ck_assert_uint_eq(batch_entry(&batch, 3)->hash, 3);
	batch_release(&whole);
}

/* The entries between them, which said the terms, are left behind. */
TEST(an_entry_taken_from_another_batch_says_its_terms)
{
	struct call other = plain(CALL_EXTEND, 2);
	struct batch whole;

	other.px_ms = 1;
	add_plain(CALL_EXTEND, 1);
	batch_add(&batch, &keys, &other, 2);
	add_plain(CALL_EXTEND, 3);
	whole = batch;
	batch_init(&batch);
	batch_take(&batch, &whole, 1);
	ck_assert(has(written(), SPAN("$1\r\nt\r\n$1\r\n1\r\n" AFTER "$1\r\nK\r\n")));
	ck_assert_uint_eq(batch.words, 3 + 3);
	batch_take(&batch, &whole, 2);
	ck_assert_uint_eq(batch.words, 2 * (3 + 3));
	batch_release(&whole);
}
