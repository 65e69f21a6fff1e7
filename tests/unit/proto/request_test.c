/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/request.c: what a request line means, and what the error says when it means nothing. */
#include "proto/proto.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct request request;
static struct parse_error mistake;
static char *kept; /* the line that request points into, of exactly its own size */

static void forget(void)
{
	free(kept);
	kept = NULL;
}

static enum parse_outcome parse_bytes(const char *line, size_t n)
{
	forget();
	kept = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(kept);
	memcpy(kept, line, n);
	memset(&mistake, 0, sizeof(mistake));
	return request_parse(kept, n, &request, &mistake);
}

static enum parse_outcome parse(const char *line)
{
	return parse_bytes(line, strlen(line));
}

static void expect_ok(const char *line)
{
	enum parse_outcome outcome = parse(line);

	ck_assert_msg(outcome == PARSE_OK, "%s: outcome %d, %s", line, (int)outcome, mistake.text);
}

static void expect_mistake(const char *line, enum error code, const char *text)
{
	enum parse_outcome outcome = parse(line);

	ck_assert_msg(outcome == PARSE_ERROR, "%s: outcome %d", line, (int)outcome);
	ck_assert_msg(mistake.code == code, "%s: %s %s", line, error_table[mistake.code].word, mistake.text);
	ck_assert_msg(strstr(mistake.text, text) != NULL, "%s: '%s' is not in '%s'", line, text, mistake.text);
}

static void expect_span(struct span got, const char *bytes, size_t n)
{
	ck_assert_uint_eq(got.n, n);
	ck_assert_mem_eq(got.p, bytes, n);
}

static void expect_text(struct span got, const char *text)
{
	expect_span(got, text, strlen(text));
}

static const struct {
	const char *line;
	enum parse_outcome outcome;
} outcome_table[] = {
	{"", PARSE_EMPTY},
	{"\r", PARSE_EMPTY},
	{"   \t ", PARSE_EMPTY},
	{"#", PARSE_EMPTY},
	{"# a \x01 comment \"", PARSE_EMPTY},
	{"PING", PARSE_OK},
	{"ping\r", PARSE_OK},
	{"  Ping\t ", PARSE_OK},
	{"@a PING", PARSE_OK},
	{"\"PING\"", PARSE_OK},
	{"'PING'", PARSE_OK},
	{"@A-b_c.d:9 HELP", PARSE_OK},
	{"HELP lock", PARSE_OK},
	{"HELLO 1 name=x heartbeat=5s", PARSE_OK},
	{"LOCK wait=1s x", PARSE_OK},
	{"? lock", PARSE_OK},
	{"exit", PARSE_OK},
	{"LOCK @x", PARSE_OK},
	{"LOCK #x", PARSE_OK},
	{"LOCK \"a=b\"", PARSE_OK},
	{"LOCK a\"=b\"", PARSE_OK},
	{"LOCK x owner=", PARSE_OK},
	{"LIST prefix=a=b", PARSE_OK},
	{"CANCEL @a", PARSE_OK},
	{"GET / HTTP/1.1", PARSE_HTTP},
	{"GET x", PARSE_ERROR},
	{"get /x", PARSE_HTTP},
	{"POST\t/ HTTP/1.1", PARSE_HTTP},
	{"POST\x0b/", PARSE_HTTP},
	{"PROPFIND /x \t HTTP/1.1", PARSE_HTTP},
	{"BREW /'pot HTTP/1.1", PARSE_HTTP},
	{"LOCK /x HTTP/1.1", PARSE_HTTP},
	{"PRI * HTTP/2.0", PARSE_HTTP},
	{"GET http://x/", PARSE_HTTP},
	{"POST ", PARSE_ERROR},
	{"POST /x HTTP/1.0\r", PARSE_HTTP},
	{"HEAD / HTTP/1.1", PARSE_HTTP},
	{"HEAD / HTTP/1.1\r", PARSE_HTTP},
	{"PUT /x HTTP/1.0", PARSE_HTTP},
	{"OPTIONS * HTTP/1.1", PARSE_HTTP},
	{"PUT HTTP/1.1", PARSE_HTTP},
	{"PUT HTTP/1.", PARSE_HTTP},
	{"PUTX HTTP/1.1", PARSE_HTTP},
	{"PUT x", PARSE_ERROR},
	{"HEAD /x", PARSE_HTTP},
	{"PUT ", PARSE_ERROR},
	{"POST", PARSE_ERROR},
	{"OPTIONS ", PARSE_ERROR},
	{"HEAD HTTP/2.0", PARSE_HTTP},
	{"GET", PARSE_ERROR},
	{"get / HTTP/1.1", PARSE_HTTP},
	{"LOCK HTTP/1.1", PARSE_OK},
	{"LOCK /x", PARSE_OK},
	{"LOCKALL /x HTTP/1.1", PARSE_OK},
};

TEST(each_line_has_its_outcome)
{
	for (size_t i = 0; i < sizeof(outcome_table) / sizeof(outcome_table[0]); i++) {
		enum parse_outcome outcome = parse(outcome_table[i].line);

		ck_assert_msg(outcome == outcome_table[i].outcome, "'%s': outcome %d %s", outcome_table[i].line, (int)outcome,
			      mistake.text);
	}
	forget();
}

static const struct {
	const char *line;
	enum error code;
	const char *text;
} mistake_table[] = {
	{"LOKC x", ERROR_UNKNOWN, "no request 'LOKC' (did you mean LOCK?)"},
	{"frobnicate", ERROR_UNKNOWN, "no request 'frobnicate'; HELP"},
	{"\"\"", ERROR_UNKNOWN, "no request ''"},
	{"wait=5s LOCK x", ERROR_UNKNOWN, "the line begins with a field, 'wait'"},
	{"PING=1", ERROR_UNKNOWN, "the line begins with a field, 'PING'"},
	{"\x01PING", ERROR_SYNTAX, "control"},
	{"LOCK \"a", ERROR_SYNTAX, "open quote"},
	{"LOCK it's", ERROR_SYNTAX, "open quote"},
	{"LOCK \"\\q\"", ERROR_SYNTAX, "bad escape"},
	{"LOCK \"a\"b", ERROR_SYNTAX, "closing quote"},
	{"LOKC x y z \"", ERROR_SYNTAX, "open quote"},
	{"@ PING", ERROR_ARG, "tag '@'"},
	{"@a/b PING", ERROR_ARG, "tag '@a/b'"},
	{"@a=b PING", ERROR_ARG, "tag '@a'"},
	{"@\xc3\xbc PING", ERROR_ARG, "tag '@\\xc3\\xbc'"},
	{"@a", ERROR_ARG, "without a request"},
	{"PING x", ERROR_ARG, "unexpected word 'x': PING"},
	{"LOCK", ERROR_ARG, "a word is missing, LOCK wants name: LOCK name [wait="},
	{"LOCK x y", ERROR_ARG, "unexpected word 'y': LOCK name"},
	{"LOCKANY 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 "
	 "49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 x", ERROR_ARG, "LOCKANY takes at most 64 names; 'x' is one too many"},
	{"LOCK wait=5s", ERROR_ARG, "a word is missing, LOCK wants name"},
	{"LOCK ''", ERROR_ARG, "empty name"},
	{"LOCK a=b", ERROR_ARG, "no field 'a'; a word that holds '=' must be quoted"},
	{"LOCK =", ERROR_ARG, "no field ''"},
	{"LOCK x wiat=5s", ERROR_ARG, "no field 'wiat' (did you mean wait?)"},
	{"LOCK x fence=5", ERROR_ARG, "LOCK has no field 'fence': LOCK name"},
	{"PING wait=1", ERROR_ARG, "PING has no field 'wait': PING"},
	{"LOCK x wait=1s WAIT=1s", ERROR_ARG, "wait is given twice"},
	{"LOCK x wait=", ERROR_ARG, "wait is a duration"},
	{"LOCK x wait=-1", ERROR_ARG, "wait is a duration"},
	{"LOCK x wait=5x", ERROR_ARG, "wait='5x'"},
	{"LOCK x wait=FOREVER", ERROR_ARG, "wait is a duration"},
	{"LOCK x ttl=forever", ERROR_ARG, "ttl is a duration"},
	{"LOCK x wait=5", ERROR_ARG, "wait='5': a duration needs a unit (did you mean 5s?)"},
	{"LOCK x wait=1.5", ERROR_ARG, "wait='1.5': a duration needs a unit (did you mean 1.5s?)"},
	{"LOCK x ttl=10000", ERROR_ARG, "ttl='10000': a duration needs a unit (did you mean 10000s?)"},
	{"LOCK x wait=00", ERROR_ARG, "wait='00': a duration needs a unit"},
	{"RATE x limit=5 per=60", ERROR_ARG, "per='60': a duration needs a unit (did you mean 60s?)"},
	{"RATE x per=60s", ERROR_ARG, "limit= is missing: RATE name limit=N per=dur ["},
	{"RATE x limit=5", ERROR_ARG, "per= is missing: RATE name limit=N per=dur ["},
	{"ACQUIRE x", ERROR_ARG, "limit= is missing: ACQUIRE name limit=N ["},
	{"KILL", ERROR_ARG, "session= is missing: KILL session=N"},
	{"LOCKALL", ERROR_ARG, "a word is missing, LOCKALL wants name ...: LOCKALL name ... ["},
	{"LOCKANY", ERROR_ARG, "a word is missing, LOCKANY wants name ...: LOCKANY name ... ["},
	{"LOCK x wait=87601h", ERROR_LIMIT, "wait may be at most 87600h, or forever; asked for '87601h'"},
	{"LOCK x wait=99999999999999999999h", ERROR_LIMIT, "wait may be at most 87600h, or forever"},
	{"HELLO 1 heartbeat=99999999999999999999h", ERROR_LIMIT, "heartbeat may be at most 87600h; asked for"},
	{"LOCK x renew=Yes", ERROR_ARG, "renew is yes or no"},
	{"LOCK x renew=", ERROR_ARG, "renew is yes or no"},
	{"LOCK x mode=exclusively", ERROR_ARG, "mode is exclusive"},
	{"UNLOCK x fence=", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=+1", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=-1", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=1.0", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=0x1", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=\"1 \"", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=9007199254740993", ERROR_ARG, "fence is a whole number"},
	{"UNLOCK x fence=18446744073709551617", ERROR_ARG, "fence is a whole number"},
	{"CANCEL", ERROR_ARG, "a word is missing, CANCEL wants @tag"},
	{"CANCEL a", ERROR_ARG, "'a' is no tag"},
	{"CANCEL @", ERROR_ARG, "'@' is no tag"},
	{"CANCEL ''", ERROR_ARG, "'' is no tag"},
	{"CANCEL @a/b", ERROR_ARG, "'@a/b' is no tag"},
};

TEST(each_mistake_names_what_was_wrong_and_what_would_be_right)
{
	for (size_t i = 0; i < sizeof(mistake_table) / sizeof(mistake_table[0]); i++)
		expect_mistake(mistake_table[i].line, mistake_table[i].code, mistake_table[i].text);
	forget();
}

TEST(a_full_request_is_understood)
{
	expect_ok("@t.1 lock orders/42 WAIT=1.5s ttl=10s Mode=exclusive renew=no owner='t 1' note=\"a b\" "
		  "trace=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 delay=2m priority=9 count=2");
	ck_assert_int_eq(request.verb, VERB_LOCK);
	expect_text(request.tag, "t.1");
	ck_assert_uint_eq(request.words, 1);
	expect_text(request.word[0], "orders/42");
	ck_assert_int_eq(request.field[FIELD_WAIT].number, 1500000);
	ck_assert_int_eq(request.field[FIELD_TTL].number, 10000000);
	ck_assert_int_eq(request.field[FIELD_MODE].number, MODE_EXCLUSIVE);
	ck_assert_int_eq(request.field[FIELD_RENEW].number, 0);
	expect_text(request.field[FIELD_OWNER].text, "t 1");
	expect_text(request.field[FIELD_NOTE].text, "a b");
	expect_text(request.field[FIELD_TRACE].text, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	ck_assert_int_eq(request.field[FIELD_DELAY].number, 120000000);
	ck_assert_int_eq(request.field[FIELD_PRIORITY].number, 9);
	ck_assert_int_eq(request.field[FIELD_COUNT].number, 2);
	for (unsigned i = 0; i < FIELD_N; i++)
		ck_assert_int_eq(request_has(&request, (enum field)i), (command_table[VERB_LOCK].fields >> i) & 1);
	forget();
}

TEST(values_mean_what_the_manual_says)
{
	expect_ok("LOCK x wait=forever renew=yes");
	ck_assert(request.field[FIELD_WAIT].number == WAIT_FOREVER);
	ck_assert_int_eq(request.field[FIELD_RENEW].number, 1);
	expect_ok("LOCK x wait=0");
	ck_assert(request_has(&request, FIELD_WAIT));
	ck_assert_int_eq(request.field[FIELD_WAIT].number, 0);
	expect_ok("UNLOCK x fence=9007199254740992 sync=yes keep=250ms");
	ck_assert(request.field[FIELD_FENCE].number == COUNT_MAX);
	ck_assert_int_eq(request.field[FIELD_KEEP].number, 250000);
	expect_ok("LOCK x ttl=87600h");
	ck_assert(request.field[FIELD_TTL].number == DURATION_MAX);
	expect_ok("LOCK x ttl=99999999999999999999h delay=87601h");
	ck_assert(request.field[FIELD_TTL].number == DURATION_LONGEST);
	ck_assert(request.field[FIELD_DELAY].number == DURATION_LONGEST);
	expect_ok("LIST prefix=a=b after=\"\" limit=007");
	expect_text(request.field[FIELD_PREFIX].text, "a=b");
	ck_assert_uint_eq(request.field[FIELD_AFTER].text.n, 0);
	ck_assert_int_eq(request.field[FIELD_LIMIT].number, 7);
	forget();
}

/* "verb <n times x>", or "… field=<n times x>" */
static enum parse_outcome parse_long(const char *before, size_t n)
{
	char line[2048];
	size_t at = strlen(before);

	memcpy(line, before, at);
	memset(line + at, 'x', n);
	return parse_bytes(line, at + n);
}

TEST(every_length_is_refused_one_beyond_its_bound)
{
	static const struct {
		const char *before;
		size_t most;
		enum error code;
	} table[] = {
		{"LOCK ", NAME_MAX_BYTES, ERROR_LIMIT},       {"SHOW ", NAME_MAX_BYTES, ERROR_LIMIT},
		{"LOCK a owner=", OWNER_MAX_BYTES, ERROR_LIMIT}, {"LOCK a note=", 256, ERROR_LIMIT},
		{"HELLO 1 name=", 256, ERROR_LIMIT},          {"LIST prefix=", NAME_MAX_BYTES, ERROR_LIMIT},
		{"LIST after=", NAME_MAX_BYTES, ERROR_LIMIT}, {"CANCEL @", TAG_MAX, ERROR_ARG},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_msg(parse_long(table[i].before, table[i].most) == PARSE_OK, "%s: %s", table[i].before, mistake.text);
		ck_assert_int_eq(parse_long(table[i].before, table[i].most + 1), PARSE_ERROR);
		ck_assert_int_eq(mistake.code, table[i].code);
	}
	ck_assert_int_eq(parse_long("LOCK ", NAME_MAX_BYTES + 1), PARSE_ERROR);
	ck_assert_str_eq(mistake.text, "a name may have at most 512 bytes; this one has 513");
	ck_assert_int_eq(parse_long("LOCK a owner=", 601), PARSE_ERROR);
	ck_assert_str_eq(mistake.text, "owner may have at most 600 bytes; this one has 601");
	forget();
}

/* The manual's meaning of a number ends with " of FIELD to N" for each field whose bound is another. */
static long long bound_in(const char *text, const char *field)
{
	char of[64];
	const char *own;

	snprintf(of, sizeof(of), " of %s to ", field);
	own = strstr(text, of);
	text = strstr(own ? own + 1 : text, " to ");
	ck_assert_ptr_nonnull(text);
	return strtoll(text + 4, NULL, 10);
}

static const char *request_with(enum field field, long long number)
{
	static char line[128];
	int verb = 0;

	while (!((command_table[verb].fields >> field) & 1))
		verb++;
	snprintf(line, sizeof(line), "%s", command_table[verb].word);
	for (unsigned i = 0; i < command_table[verb].least; i++)
		strcat(line, " x");
	for (unsigned i = 0; i < FIELD_N; i++)
		if (i != (unsigned)field && ((command_table[verb].required >> i) & 1))
			strcat(strcat(strcat(line, " "), field_table[i].word), field_table[i].type == VALUE_COUNT ? "=1" : "=1s");
	snprintf(line + strlen(line), sizeof(line) - strlen(line), " %s=%lld", field_table[field].word, number);
	return line;
}

TEST(the_largest_number_that_a_mistake_and_the_manual_name_is_taken_and_no_larger_one)
{
	for (unsigned i = 0; i < FIELD_N; i++) {
		const char *word = field_table[i].word;
		long long most;

		if (field_table[i].type != VALUE_COUNT && field_table[i].type != VALUE_PRIORITY)
			continue;
		expect_mistake(request_with((enum field)i, -1), ERROR_ARG, "is a whole number from 0 to ");
		most = bound_in(mistake.text, word);
		ck_assert_int_eq(bound_in(value_table[field_table[i].type].meaning, word), most);
		expect_mistake(request_with((enum field)i, most + 1), ERROR_ARG, "is a whole number from 0 to ");
		expect_ok(request_with((enum field)i, most));
		ck_assert(request.field[i].number == most);
	}
	forget();
}

TEST(a_name_is_measured_after_unquoting)
{
	char line[8 + 4 * NAME_MAX_BYTES] = "LOCK \"";
	size_t at = 6;

	for (int i = 0; i < NAME_MAX_BYTES; i++, at += 4)
		memcpy(line + at, "\\x00", 4);
	line[at++] = '"';
	ck_assert_int_eq(parse_bytes(line, at), PARSE_OK);
	ck_assert_uint_eq(request.word[0].n, NAME_MAX_BYTES);
	forget();
}

TEST(a_tag_is_told_with_a_mistake_and_a_bad_one_is_not)
{
	expect_mistake("@a1 LOKC x", ERROR_UNKNOWN, "LOCK");
	expect_text(request.tag, "a1");
	expect_mistake("@a1 LOCK \"x", ERROR_SYNTAX, "open quote");
	expect_text(request.tag, "a1");
	expect_mistake("@a1", ERROR_ARG, "without");
	expect_text(request.tag, "a1");
	expect_mistake("@a/ LOCK x", ERROR_ARG, "tag");
	ck_assert_uint_eq(request.tag.n, 0);
	expect_mistake("@abcdefghijklmnopqrstuvwxyz1234567 PING", ERROR_ARG, "32");
	ck_assert_uint_eq(request.tag.n, 0);
	expect_mistake("\"@a\" PING", ERROR_UNKNOWN, "@a");
	ck_assert_uint_eq(request.tag.n, 0);
	expect_ok("@abcdefghijklmnopqrstuvwxyz123456 PING");
	ck_assert_uint_eq(request.tag.n, 32);
	expect_mistake("LOCK \"x", ERROR_SYNTAX, "open quote");
	ck_assert_uint_eq(request.tag.n, 0);
	forget();
}

TEST(text_of_a_peer_is_shown_escaped_and_cut)
{
	char line[1024];

	expect_mistake("\xff\xfeZ x", ERROR_UNKNOWN, "'\\xff\\xfeZ'");
	expect_mistake("\"a\\nb\"", ERROR_UNKNOWN, "'a\\x0ab'");
	memset(line, '\xff', sizeof(line));
	ck_assert_int_eq(parse_bytes(line, sizeof(line)), PARSE_ERROR);
	ck_assert_uint_lt(strlen(mistake.text), 128);
	ck_assert_ptr_nonnull(strstr(mistake.text, "...'"));
	forget();
}
