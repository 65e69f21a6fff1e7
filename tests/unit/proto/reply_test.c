/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/reply.c, quote.c and reader.c: replies, and that both sides read them as they were written. */
#include "proto/proto.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct reply reply;
static char *out; /* of exactly REPLY_MAX bytes, so that one too many is seen */

static void room(void)
{
	free(out);
	out = malloc(REPLY_MAX);
	ck_assert_ptr_nonnull(out);
}

static void begin(const char *tag, const char *word)
{
	room();
	reply_begin(&reply, out, span_of(tag), word);
}

static void expect_line(const char *line)
{
	size_t n = reply_end(&reply);

	ck_assert_msg(n == strlen(line) && memcmp(out, line, n) == 0, "%s: %.*s", line, (int)n, out);
	free(out);
	out = NULL;
}

TEST(a_line_is_its_word_and_its_fields)
{
	begin("", "OK");
	expect_line("OK\n");
	begin("", "OK");
	reply_text(&reply, "name", SPAN("orders/42"));
	reply_int(&reply, "fence", INT64_C(1795238400123456));
	reply_ms(&reply, "valid_ms", 9898999);
	reply_int(&reply, "count", 0);
	expect_line("OK name=orders/42 fence=1795238400123456 valid_ms=9898 count=0\n");
	begin("a.1", "*");
	reply_int(&reply, "pos", 1);
	expect_line("@a.1 * pos=1\n");
	begin("", "! LOST");
	reply_text(&reply, "reason", SPAN("quorum"));
	expect_line("! LOST reason=quorum\n");
}

TEST(an_error_is_its_code_and_its_text_without_control_bytes)
{
	room();
	reply_error(&reply, out, SPAN("t"), ERROR_NOTHELD, "'x' is not yours");
	expect_line("@t ERR NOTHELD 'x' is not yours\n");
	room();
	reply_error(&reply, out, SPAN(""), ERROR_ARG, "a\nOK name=b\x1b\x7f\xc3\xbc");
	expect_line("ERR ARG a?OK name=b??\xc3\xbc\n");
}

TEST(numbers_are_written_whole)
{
	begin("", "OK");
	reply_int(&reply, "a", INT64_MAX);
	reply_int(&reply, "b", INT64_MIN);
	reply_int(&reply, "c", -1);
	reply_ms(&reply, "d", -5000);
	reply_ms(&reply, "e", 999);
	reply_ms(&reply, "f", INT64_MIN);
	reply_ms(&reply, "g", INT64_MAX);
	expect_line("OK a=9223372036854775807 b=-9223372036854775808 c=-1 d=0 e=0 f=0 g=9223372036854775\n");
}

static void expect_number(int64_t value)
{
	char line[64];

	snprintf(line, sizeof(line), "OK n=%" PRId64 "\n", value);
	begin("", "OK");
	reply_int(&reply, "n", value);
	expect_line(line);
}

TEST(a_number_of_any_length_has_all_its_digits)
{
	int64_t power = 1;

	for (int digits = 1; digits <= 19; digits++) {
		for (int64_t first = 1; first <= 9; first++) {
			expect_number(first * power - 1);
			expect_number(first * power);
			expect_number(-first * power);
			expect_number(1 - first * power);
		}
		power *= digits < 19 ? 10 : 1;
	}
	for (int64_t value = 0; value <= 20000; value++)
		expect_number(value);
}

TEST(a_payload_of_any_bytes_fits_into_a_line_that_is_widened_for_it)
{
	static char value[PAYLOAD_MAX], wide[LINE_MAX_DEFAULT];
	char name[NAME_MAX_BYTES];
	struct span names = {memset(name, 1, sizeof(name)), sizeof(name)};
	struct reply_line line;
	size_t n;

	memset(value, 1, sizeof(value));
	reply_begin(&reply, wide, SPAN("0123456789012345678901234567890"), "OK");
	reply_widen(&reply, 4 * sizeof(value));
	reply_text(&reply, "queue", names);
	reply_text(&reply, "name", names);
	reply_text(&reply, "payload", (struct span){value, sizeof(value)});
	n = reply_end(&reply);
	ck_assert_uint_le(n, LINE_MAX_DEFAULT);
	ck_assert_int_eq(reply_parse(wide, n - 1, &line), 0);
	ck_assert(span_equal(reply_find(&line, "payload"), (struct span){value, sizeof(value)}));
}

TEST(a_number_is_written_whole_into_the_last_bytes_of_a_line_or_not_at_all)
{
	static char value[REPLY_MAX];
	const size_t least = sizeof("OK a= n=-9223372036854775808\n") - 1;

	memset(value, 'x', sizeof(value));
	begin("", "OK");
	reply_text(&reply, "a", (struct span){value, REPLY_MAX - least});
	reply_int(&reply, "n", INT64_MIN);
	ck_assert_uint_eq(reply_end(&reply), REPLY_MAX);
	ck_assert_mem_eq(out + REPLY_MAX - 24, " n=-9223372036854775808\n", 24);
	begin("", "OK");
	reply_text(&reply, "a", (struct span){value, REPLY_MAX - least + 1});
	reply_int(&reply, "n", INT64_MIN);
	ck_assert_uint_eq(reply_end(&reply), REPLY_MAX - 22);
	free(out);
	out = NULL;
}

static void expect_quoted(const char *value, size_t n, const char *quoted)
{
	char text[256];
	size_t got = quote((struct span){value, n}, text, sizeof(text));

	ck_assert_msg(got == strlen(quoted) && memcmp(text, quoted, got) == 0, "%s: %.*s", quoted, (int)got, text);
}

TEST(a_value_is_quoted_when_it_must_be_and_only_then)
{
	expect_quoted("orders/42", 9, "orders/42");
	expect_quoted("@a#*!", 5, "@a#*!");
	expect_quoted("", 0, "\"\"");
	expect_quoted("a b", 3, "\"a b\"");
	expect_quoted("a\tb", 3, "\"a\\tb\"");
	expect_quoted("a=b", 3, "\"a=b\"");
	expect_quoted("a\"b", 3, "\"a\\\"b\"");
	expect_quoted("a\\b", 3, "\"a\\\\b\"");
	expect_quoted("it's", 4, "\"it's\"");
	expect_quoted("'", 1, "\"'\"");
	expect_quoted("a\nb\rc", 5, "\"a\\nb\\rc\"");
	expect_quoted("\0\x01\x7f\xff", 4, "\"\\x00\\x01\\x7f\\xff\"");
}

TEST(every_ascii_byte_but_these_stands_bare)
{
	for (int byte = 0; byte < 128; byte++) {
		char value[] = "xy?", text[16];
		bool bare = byte > ' ' && byte < 0x7f && !strchr("\"'=\\", byte);

		value[2] = (char)byte;
		ck_assert_msg((quote((struct span){value, 3}, text, sizeof(text)) == 3) == bare, "byte %d", byte);
	}
}

TEST(what_nobody_sees_is_escaped)
{
	expect_quoted("a\xe2\x80\xae" "b", 5, "\"a\\xe2\\x80\\xae" "b\""); /* U+202E turns what follows */
	expect_quoted("\xe2\x80\x8b", 3, "\"\\xe2\\x80\\x8b\"");        /* U+200B: no width */
	expect_quoted("\xc2\xad", 2, "\"\\xc2\\xad\"");                 /* U+00AD: a soft hyphen */
	expect_quoted("\xef\xbb\xbf", 3, "\"\\xef\\xbb\\xbf\"");        /* U+FEFF */
	expect_quoted("\xf3\xa0\x81\x81", 4, "\"\\xf3\\xa0\\x81\\x81\""); /* U+E0041: a tag */
	expect_quoted("\xe2\x80\x8a", 3, "\xe2\x80\x8a");               /* U+200A, a thin blank, and U+2010, a hyphen, beside them */
	expect_quoted("\xe2\x80\x90", 3, "\xe2\x80\x90");
}

TEST(well_formed_utf8_stands_as_it_is_and_nothing_else_does)
{
	expect_quoted("\xc3\xbc", 2, "\xc3\xbc");
	expect_quoted("\xc3\xbc x", 4, "\"\xc3\xbc x\"");
	expect_quoted("\xc3\xbc\xe2\x82\xac'", 6, "\"\xc3\xbc\xe2\x82\xac'\"");
	expect_quoted("x\xe2\x82\xacx", 5, "x\xe2\x82\xacx");
	expect_quoted("\xe2\x82\xac", 3, "\xe2\x82\xac");
	expect_quoted("\xf0\x9f\x94\x92", 4, "\xf0\x9f\x94\x92");
	expect_quoted("\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xbf");
	expect_quoted("\xc2\xa0", 2, "\xc2\xa0");
	expect_quoted("\xc2\x9b", 2, "\"\\xc2\\x9b\""); /* a C1 control: terminals obey it */
	expect_quoted("\xc3", 1, "\"\\xc3\"");          /* cut */
	expect_quoted("\xe2\x82", 2, "\"\\xe2\\x82\"");
	expect_quoted("\xf0\x9f\x94", 3, "\"\\xf0\\x9f\\x94\"");
	expect_quoted("\xc3\xc3\xbc", 3, "\"\\xc3\xc3\xbc\"");
	expect_quoted("\x80", 1, "\"\\x80\"");
	expect_quoted("\xc0\xaf", 2, "\"\\xc0\\xaf\""); /* overlong */
	expect_quoted("\xe0\x9f\xbf", 3, "\"\\xe0\\x9f\\xbf\"");
	expect_quoted("\xf0\x8f\xbf\xbf", 4, "\"\\xf0\\x8f\\xbf\\xbf\"");
	expect_quoted("\xed\xa0\x80", 3, "\"\\xed\\xa0\\x80\"");          /* a surrogate */
	expect_quoted("\xf4\x90\x80\x80", 4, "\"\\xf4\\x90\\x80\\x80\""); /* beyond the last */
	expect_quoted("\xf5\x80\x80\x80", 4, "\"\\xf5\\x80\\x80\\x80\"");
	expect_quoted("\xe2\x28\xac", 3, "\"\\xe2(\\xac\"");
}

TEST(text_that_does_not_fit_is_not_written)
{
	static const char *const values[] = {"abc", "a b", "\xff\xff", "", "a\"", "\xe2\x82\xac \xe2\x82\xac"};
	char text[64];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		size_t n = quote(span_of(values[i]), text, sizeof(text));

		for (size_t size = 0; size < n; size++) {
			char *exact = malloc(size ? size : 1);

			ck_assert_uint_eq(quote(span_of(values[i]), exact, size), 0);
			free(exact);
		}
		ck_assert_uint_eq(quote(span_of(values[i]), text, n), n);
	}
}

TEST(a_line_never_exceeds_its_bound_and_a_field_is_whole_or_absent)
{
	static char value[REPLY_MAX + 100];

	memset(value, 'x', sizeof(value));
	for (size_t n = REPLY_MAX - 40; n < sizeof(value); n++) {
		size_t length;

		begin("tag", "OK");
		reply_text(&reply, "a", (struct span){value, n});
		reply_int(&reply, "b", 1234567890);
		reply_text(&reply, "c", SPAN("z z"));
		length = reply_end(&reply);
		ck_assert_uint_le(length, REPLY_MAX);
		ck_assert_int_eq(out[length - 1], '\n');
		ck_assert_int_eq(length > n, n <= REPLY_MAX - sizeof("@tag OK a=\n") + 1);
	}
	room();
	value[sizeof(value) - 1] = '\0';
	reply_error(&reply, out, SPAN("tag"), ERROR_INTERNAL, value);
	ck_assert_uint_eq(reply_end(&reply), REPLY_MAX);
	begin(value, value);
	reply_text(&reply, "", SPAN(""));
	ck_assert_uint_eq(reply_end(&reply), REPLY_MAX);
	free(out);
}

static bool reads_as(struct span value)
{
	static struct reply_line line;
	char text[REPLY_MAX];
	size_t n;

	reply_begin(&reply, text, SPAN("t"), "OK");
	reply_text(&reply, "name", value);
	n = reply_end(&reply);
	return reply_parse(text, n - 1, &line) == 0 && span_equal(line.tag, SPAN("t")) && line.kind == LINE_OK &&
	       line.fields == 1 && span_equal(reply_find(&line, "name"), value);
}

static bool parses_as(const char *before, struct span value, struct request *ret_request)
{
	static struct parse_error mistake;
	static char text[REPLY_MAX];
	size_t at = strlen(before), n = quote(value, text + at, sizeof(text) - at);

	memcpy(text, before, at);
	return n > 0 && request_parse(text, at + n, ret_request, &mistake) == PARSE_OK;
}

/* A value that is written as a field of a reply is read as itself, and also when it is sent back as a word and as a field. */
static void expect_round_trip(struct span value)
{
	static struct request request;
	bool same = reads_as(value);

	if (value.n > 0)
		same = same && parses_as("LOCK ", value, &request) && span_equal(request.word[0], value);
	same = same && parses_as("LOCK x note=", value, &request) && span_equal(request.field[FIELD_NOTE].text, value);
	if (!same)
		ck_abort_msg("not itself: '%.*s' of %zu bytes", (int)value.n, value.p, value.n);
}

TEST(a_quoted_value_can_be_sent_back_as_it_stands)
{
	char value[3] = "xyz";

	expect_round_trip(SPAN(""));
	for (int a = 0; a < 256; a++) {
		value[0] = (char)a;
		expect_round_trip((struct span){value, 1});
		expect_round_trip((struct span){value, 3});
		for (int b = 0; b < 256; b++) {
			value[1] = (char)b;
			expect_round_trip((struct span){value, 2});
		}
		value[1] = 'y';
	}
}

TEST(random_bytes_come_back_as_they_were)
{
	static const char likely[] = "\"'\\=\t \n\xc3\xbc\xe2\x82\xac\xff x";
	uint64_t seed = 1;
	char value[256];

	for (int turn = 0; turn < 20000; turn++) {
		size_t n = (size_t)turn % (sizeof(value) + 1);

		for (size_t i = 0; i < n; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			value[i] = turn & 1 ? (char)(seed >> 56) : likely[(seed >> 33) % (sizeof(likely) - 1)];
		}
		expect_round_trip((struct span){value, n});
	}
}
