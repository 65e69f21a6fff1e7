/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a request line. All that the parser hands back lies inside the line. A mistake is printable. A request that was understood can be written anew,
 * quoted as replies quote, and is understood as the same request.
 */
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"

static bool inside(struct span span, const char *line, size_t n)
{
	return span.n == 0 || (span.p >= line && span.p + span.n <= line + n);
}

static void check_inside(const struct request *r, const char *line, size_t n)
{
	PROMISE(inside(r->tag, line, n) && r->tag.n <= TAG_MAX);
	PROMISE(r->words <= WORDS_MAX);
	for (unsigned i = 0; i < r->words; i++)
		PROMISE(inside(r->word[i], line, n));
	for (unsigned i = 0; i < FIELD_N; i++)
		if (request_has(r, (enum field)i))
			PROMISE(inside(r->field[i].text, line, n));
}

static void check_mistake(const struct parse_error *m)
{
	PROMISE(m->code < ERROR_N && m->text[0]);
	for (const char *c = m->text; *c; c++)
		PROMISE(*c >= ' ' && *c < 0x7f);
}

static size_t put(char *out, size_t at, struct span text)
{
	memcpy(out + at, text.p, text.n);
	return at + text.n;
}

/* A quoted byte takes four bytes at most, and there are few words and fields. */
static size_t write_anew(const struct request *r, char *out, size_t size)
{
	size_t at = 0;

	if (r->tag.n > 0) {
		at = put(out, at, SPAN("@"));
		at = put(out, at, r->tag);
		at = put(out, at, SPAN(" "));
	}
	at = put(out, at, span_of(command_table[r->verb].word));
	for (unsigned i = 0; i < r->words; i++) {
		at = put(out, at, SPAN(" "));
		at += quote(r->word[i], out + at, size - at);
	}
	for (unsigned i = 0; i < FIELD_N; i++) {
		if (!request_has(r, (enum field)i))
			continue;
		at = put(out, at, SPAN(" "));
		at = put(out, at, span_of(field_table[i].word));
		at = put(out, at, SPAN("="));
		at += quote(r->field[i].text, out + at, size - at);
	}
	return at;
}

static void check_same(const struct request *a, const struct request *b)
{
	PROMISE(span_equal(a->tag, b->tag) && a->verb == b->verb && a->words == b->words && a->given == b->given);
	for (unsigned i = 0; i < a->words; i++)
		PROMISE(span_equal(a->word[i], b->word[i]));
	for (unsigned i = 0; i < FIELD_N; i++)
		if (request_has(a, (enum field)i))
			PROMISE(span_equal(a->field[i].text, b->field[i].text) && a->field[i].number == b->field[i].number);
}

static void check_anew(const struct request *r, size_t n)
{
	size_t size = 4 * n + 1024;
	char *line = malloc(size);
	struct request again;
	struct parse_error mistake;

	PROMISE(line != NULL);
	PROMISE(request_parse(line, write_anew(r, line, size), &again, &mistake) == PARSE_OK);
	check_same(r, &again);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *line = malloc(n ? n : 1);
	struct request request;
	struct parse_error mistake;
	enum parse_outcome outcome;

	PROMISE(line != NULL);
	if (n > 0)
		memcpy(line, data, n);
	outcome = request_parse(line, n, &request, &mistake);
	check_inside(&request, line, n);
	if (outcome == PARSE_ERROR)
		check_mistake(&mistake);
	else if (outcome == PARSE_OK)
		check_anew(&request, n);
	free(line);
	return 0;
}
