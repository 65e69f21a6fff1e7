/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/request.c and reader.c against any bytes: each line is answered, and nothing outside it is touched. */
#include "proto/proto.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *const whole_lines[] = {
	"@t.1 LOCK orders/42 wait=1.5s ttl=10s mode=exclusive renew=no owner='t\\' 1' note=\"a b\\x00\\n\" delay=2m",
	"UNLOCK \"orders 42\" fence=1795238400123456 sync=yes keep=1h",
	"hello 1 name=\"worker \xc3\xbc\" heartbeat=5s",
	"@b LIST locks prefix=orders/ after=orders/42 limit=10",
	"@c CANCEL @t.1",
	"GET / HTTP/1.1",
	"@a.1 BUSY name=orders/42 holder=\"worker-7 \\x00\" held_ms=12400",
	"! LOST name='a b' fence=1 reason=quorum",
	"@a ERR DEADLOCK cycle=\"a<-b<-a\"",
};
#define WHOLE_LINES (sizeof(whole_lines) / sizeof(whole_lines[0]))

static bool inside(struct span span, const char *line, size_t n)
{
	return span.n == 0 || (span.p >= line && span.p + span.n <= line + n);
}

static bool request_inside(const struct request *r, const char *line, size_t n)
{
	for (unsigned i = 0; i < r->words; i++)
		if (!inside(r->word[i], line, n))
			return false;
	for (unsigned i = 0; i < FIELD_N; i++)
		if (request_has(r, (enum field)i) && !inside(r->field[i].text, line, n))
			return false;
	return inside(r->tag, line, n);
}

static bool shown_well(const struct parse_error *m)
{
	const char *c = m->text;

	while (*c >= ' ' && *c < 0x7f)
		c++;
	return c > m->text && !*c;
}

static void answer_as_request(char *line, size_t n)
{
	static struct request request;
	static struct parse_error mistake;
	enum parse_outcome outcome = request_parse(line, n, &request, &mistake);

	if (!request_inside(&request, line, n))
		ck_abort_msg("something is outside the line");
	if (outcome == PARSE_OK && request.verb >= VERB_N)
		ck_abort_msg("a request without a verb");
	if (outcome == PARSE_ERROR && !shown_well(&mistake))
		ck_abort_msg("not fit to be shown: %s", mistake.text);
}

static void answer_as_reply(char *line, size_t n)
{
	static struct reply_line reply;

	if (reply_parse(line, n, &reply))
		return;
	if (!inside(reply.tag, line, n) || !inside(reply.code, line, n) || !inside(reply.text, line, n))
		ck_abort_msg("something is outside the line");
	for (unsigned i = 0; i < reply.fields; i++)
		if (!inside(reply.field[i].name, line, n) || !inside(reply.field[i].value, line, n))
			ck_abort_msg("field %u is outside the line", i);
}

/* Over copies of exactly its own size, so that a byte too many is seen. */
static void answer(const char *bytes, size_t n)
{
	char *line = malloc(n ? n : 1);

	if (!line)
		ck_abort_msg("no memory");
	memcpy(line, bytes, n);
	answer_as_request(line, n);
	memcpy(line, bytes, n);
	answer_as_reply(line, n);
	free(line);
}

TEST(every_prefix_of_a_line_is_answered)
{
	for (size_t i = 0; i < WHOLE_LINES; i++)
		for (size_t n = 0; n <= strlen(whole_lines[i]); n++)
			answer(whole_lines[i], n);
}

TEST(every_byte_of_a_line_may_be_any_other)
{
	char line[256];

	for (size_t i = 0; i < WHOLE_LINES; i++) {
		size_t n = strlen(whole_lines[i]);

		for (size_t at = 0; at < n; at++)
			for (int byte = 0; byte < 256; byte += 1 + (byte >= 0x80) * 7) {
				memcpy(line, whole_lines[i], n);
				line[at] = (char)byte;
				answer(line, n);
			}
	}
}

TEST(garbage_is_answered)
{
	static const char alphabet[] = "LOCK \"\"''\\\\xn=@#\t\x01\xff w";
	uint64_t seed = 1;
	char line[64];

	for (int turn = 0; turn < 30000; turn++) {
		size_t n = (size_t)turn % sizeof(line);

		for (size_t i = 0; i < n; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			line[i] = turn & 64 ? (char)(seed >> 56) : alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
		}
		answer(line, n);
	}
}

static void fill(char *line, const char *pattern)
{
	size_t n = strlen(pattern);

	memcpy(line, "LOCK ", 5);
	for (size_t i = 5; i < LINE_MAX_DEFAULT; i++)
		line[i] = pattern[i % n];
	answer(line, LINE_MAX_DEFAULT);
}

TEST(a_whole_line_of_one_thing_is_answered)
{
	static const char *const patterns[] = {"x",  "x ", " ",    "a= ",  "=", "\"", "\" ",    "'",
					       "' ", "\\", "\"\\", "\xff", "@", "#",  "wait=1 "};
	char line[LINE_MAX_DEFAULT];

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		fill(line, patterns[i]);
}
