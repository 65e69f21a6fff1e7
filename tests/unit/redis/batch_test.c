/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/batch.c: calls to commands, to the letter. */
#include "daemon/redis/batch.h"

#include <check.h>

static struct script_keys keys;
static struct batch batch;
static struct buf out;

static void setup(void)
{
	script_keys_init(&keys, "lock:", 60 * SEC, 0);
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
		  SPAN("*30\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n6\r\n" HEAD "$9\r\nlock:a\0\r\n\r\n$6\r\nlock:e\r\n$6\r\nlock:r\r\n"
		       "$3\r\nj|m\r\n" SKEW "$1\r\na\r\n" VALUE FENCE "$1\r\n3\r\n$4\r\n9000\r\n" AFTER WAIT
		       "$1\r\ne\r\n" VALUE "$9\r\nd2:8:00ff\r\n$4\r\n9000\r\n" FENCE "$1\r\n1\r\n" AFTER "$1\r\n1\r\n"
		       "$1\r\nr\r\n" VALUE));
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

#define KEY   "$6\r\nlock:n\r\n"
#define TERMS "$1\r\nt\r\n$4\r\n9000\r\n" AFTER "$2\r\n20\r\n"

TEST(the_key_of_a_slot_is_no_key_of_a_lock)
{
	static const char *const name[] = {SLOT_PREFIX "a#0", "\001\001s:a#0", "\001\001"};

	for (unsigned i = 0; i < 3; i++) {
		struct call call = call_of(CALL_LOOK, i + 1, span_of(name[i]));

		batch_add(&batch, &keys, &call, i + 1);
	}
	check_out("SHA", SPAN("text"),
		  SPAN("*14\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n6\r\n" HEAD
		       "$19\r\nredlockd:lock:s:a#0\r\n$11\r\nlock:\001s:a#0\r\n$6\r\nlock:\001\r\n$3\r\nj|m\r\n" SKEW
		       "$1\r\nl\r\n$1\r\nl\r\n$1\r\nl\r\n"));
}

TEST(the_common_calls_say_once_what_they_share)
{
	add_plain(CALL_RELEASE, 1);
	add_plain(CALL_ACQUIRE, 2);
	add_plain(CALL_ACQUIRE, 3);
	add_plain(CALL_EXTEND, 4);
	add_plain(CALL_WITHDRAW, 5);
	add_plain(CALL_LOOK, 6);
	check_out("SHA", SPAN(""),
		  SPAN("*32\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n9\r\n" HEAD KEY KEY KEY KEY KEY KEY "$3\r\nj|m\r\n" SKEW
		       "$1\r\nr\r\n" VALUE TERMS "$1\r\ng\r\n" VALUE FENCE "$1\r\ng\r\n" VALUE FENCE "$1\r\nK\r\n" VALUE FENCE
		       "$1\r\nx\r\n$6\r\nticket\r\n$1\r\nl\r\n"));
}

/* Does a call of this kind behind an acquire, which differs from it in one field, say its terms anew? */
TEST(terms_are_said_anew_where_a_call_has_others_and_looks_at_them)
{
	static const struct {
		const char *what;
		enum call_kind kind;
		int64_t px_ms, not_after_ms, reserve_ms;
		bool create, again;
	} row[] = {
		{"the same", CALL_ACQUIRE, 9000, 1761234567890, 20, true, false},
		{"an acquire, another TTL", CALL_ACQUIRE, 9001, 1761234567890, 20, true, true},
		{"an acquire, another end", CALL_ACQUIRE, 9000, 1761234567891, 20, true, true},
		{"an acquire, reserved for longer", CALL_ACQUIRE, 9000, 1761234567890, 21, true, true},
		{"a renewal", CALL_EXTEND, 9000, 1761234567890, 0, true, false},
		{"a renewal, another TTL", CALL_EXTEND, 9001, 1761234567890, 20, true, true},
		{"a renewal that may set the key, another end", CALL_EXTEND, 9000, 0, 20, true, true},
		{"a renewal that may not", CALL_EXTEND, 9000, 0, 0, false, false},
		{"a renewal that may not, another TTL", CALL_EXTEND, 1, 0, 0, false, true},
		{"a release", CALL_RELEASE, 0, 0, 0, false, false},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct call call = plain(row[i].kind, 2);
		unsigned words;

		batch_reset(&batch);
		add_plain(CALL_ACQUIRE, 1);
		words = batch.words + (row[i].kind == CALL_RELEASE ? 2 : 3);
		call.px_ms = row[i].px_ms;
		call.not_after_ms = row[i].not_after_ms;
		call.reserve_ms = row[i].reserve_ms;
		call.create = row[i].create;
		batch_add(&batch, &keys, &call, 2);
		ck_assert_msg(batch.words == words + (row[i].again ? 4 : 0), "%s", row[i].what);
	}
}

/* What makes a call one of the uncommon kind: see lua/prelude.lua. */
TEST(a_call_that_needs_more_says_more)
{
	struct call acquire = plain(CALL_ACQUIRE, 1), extend = plain(CALL_EXTEND, 1), release = plain(CALL_RELEASE, 1), call[5];
	const char op[] = "aaeeR";

	call[0] = call[1] = acquire;
	call[2] = call[3] = extend;
	call[4] = release;
	call[0].range = 1;
	call[1].ticket = SPAN("ticket");
	call[2].beyond = true;
	call[3].exact = true;
	call[4].form = FORM_SHARED;
	for (unsigned i = 0; i < 5; i++) {
		batch_add(&batch, &keys, &call[i], 1);
		ck_assert_int_eq(batch.entry[i].op, op[i]);
	}
	ck_assert(!batch.termed);
}

TEST(probe_and_join_are_written_to_the_letter)
{
	add(CALL_PROBE, 1);
	check_out("SHA", SPAN(""), SPAN("*6\r\n$7\r\nEVALSHA\r\n$3\r\nSHA\r\n$1\r\n3\r\n" HEAD));
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
	batch_add(&batch, &keys, &call, 1);
	ck_assert(span_equal(
		(struct span){buf_begin(&batch.args), buf_length(&batch.args)},
		SPAN("$1\r\na\r\n" VALUE "$20\r\n-9223372036854775808\r\n$1\r\n0\r\n$19\r\n9223372036854775807\r\n$2\r\n-1\r\n" WAIT)));
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
	add(CALL_RELEASE, 2);
	add(CALL_EXTEND, 3);
	whole = batch;
	batch_init(&batch);
	for (i = 0; i < 3; i++)
		batch_take(&batch, &whole, i);
	buf_clear(&out);
	batch_write(&whole, &keys, "SHA", SPAN(""), &out);
	{
		struct buf expected = out;

		buf_init(&out);
		check_out("SHA", SPAN(""), (struct span){buf_begin(&expected), buf_length(&expected)});
		buf_release(&expected);
	}
	ck_assert_uint_eq(batch.entry[2].id, 3);
	ck_assert_uint_eq(batch.entry[2].hash, 3);
	batch_release(&whole);
}

/* The entries between them, which said the terms, are left behind. */
TEST(an_entry_taken_from_another_batch_says_its_terms)
{
	struct call other = plain(CALL_ACQUIRE, 2);
	struct batch whole;
	struct buf expected;

	other.px_ms = 1;
	add_plain(CALL_ACQUIRE, 1);
	batch_add(&batch, &keys, &other, 2);
	add_plain(CALL_ACQUIRE, 3);
	add_plain(CALL_EXTEND, 4);
	whole = batch;
	batch_init(&batch);
	batch_add(&batch, &keys, &other, 2);
	add_plain(CALL_EXTEND, 4);
	expected = batch.args;
	buf_init(&batch.args);
	batch_reset(&batch);
	batch_take(&batch, &whole, 1);
	batch_take(&batch, &whole, 3);
	ck_assert(span_equal((struct span){buf_begin(&batch.args), buf_length(&batch.args)}, (struct span){buf_begin(&expected), buf_length(&expected)}));
	ck_assert_uint_eq(batch.words, 2 * (4 + 3));
	buf_release(&expected);
	batch_release(&whole);
}
