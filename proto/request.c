/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses a request line into a struct request: one pass, in place. After a mistake it still splits the line to its end, because a line that cannot be
 * split is SYNTAX, whatever its other mistakes. It must never send raw bytes of a peer back.
 */
#include "proto/foreign.h"
#include "proto/proto.h"
#include "proto/text.h"
#include "proto/token.h"

#include <stdarg.h>
#include <stdio.h>

#define USAGE_MAX 256

struct parser {
	struct request *request;
	struct parse_error *parse_error;
	bool tagged; /* the line starts with '@'; a quoted "@a" is a word */
	bool tag_read, verb_read;
	bool failed; /* parse_error is set; later ones are ignored */
};

__attribute__((format(printf, 3, 4))) static void parser_refuse(struct parser *p, enum error code, const char *format, ...)
{
	va_list args;

	p->failed = true;
	p->parse_error->code = code;
	va_start(args, format);
	vsnprintf(p->parse_error->text, sizeof(p->parse_error->text), format, args);
	va_end(args);
}

static const char *usage(enum verb verb, char out[USAGE_MAX])
{
	out[command_usage(verb, out, USAGE_MAX - 1)] = '\0';
	return out;
}

/* Takes the token as the tag if the line starts with '@'. */
static bool parser_takes_tag(struct parser *p, const struct token *token)
{
	char shown[SHOWN_MAX];

	p->tag_read = true;
	if (!p->tagged)
		return false;
	p->request->tag = (struct span){token->text.p + 1, token->text.n - 1};
	if (token->is_field || !tag_valid(p->request->tag)) {
		p->request->tag = SPAN("");
		parser_refuse(p, ERROR_ARG, "tag %s: a tag is @ and 1 to %d characters of A-Z a-z 0-9 _ . : -",
			      text_shown(token->text, shown), TAG_MAX);
	}
	return true;
}

static void verb_refuse(struct parser *p, const struct token *token)
{
	char shown[SHOWN_MAX];
	const char *near;

	text_shown(token->text, shown);
	if (token->is_field) {
		parser_refuse(p, ERROR_UNKNOWN, "the line begins with a field, %s; a verb comes first, HELP lists them", shown);
		return;
	}
	near = command_nearest(token->text);
	if (near)
		parser_refuse(p, ERROR_UNKNOWN, "no request %s (did you mean %s?)", shown, near);
	else
		parser_refuse(p, ERROR_UNKNOWN, "no request %s; HELP lists them", shown);
}

static void parser_verb(struct parser *p, const struct token *token)
{
	p->verb_read = true;
	if (!token->is_field)
		p->request->verb = command_find(token->text);
	if (p->request->verb == VERB_N)
		verb_refuse(p, token);
}

static void name_check(struct parser *p, struct span name)
{
	if (name.n == 0)
		parser_refuse(p, ERROR_ARG, "an empty name; a name has 1 to %d bytes", NAME_MAX_BYTES);
	else if (name.n > NAME_MAX_BYTES)
		parser_refuse(p, ERROR_LIMIT, "a name may have at most %d bytes; this one has %zu", NAME_MAX_BYTES, name.n);
}

static void tag_check(struct parser *p, struct span word)
{
	char shown[SHOWN_MAX];

	if (word.n == 0 || word.p[0] != '@' || !tag_valid((struct span){word.p + 1, word.n - 1}))
		parser_refuse(p, ERROR_ARG, "%s is no tag; a tag is @ and 1 to %d characters of A-Z a-z 0-9 _ . : -",
			      text_shown(word, shown), TAG_MAX);
}

static void parser_word(struct parser *p, struct span word)
{
	const struct command *command = &command_table[p->request->verb];
	char shown[SHOWN_MAX], form[USAGE_MAX];

	if (p->request->words == command->most) {
		if (command->kind == WORD_NAME && command->most > 1)
			parser_refuse(p, ERROR_ARG, "%s takes at most %u names; %s is one too many", command->word, command->most,
			              text_shown(word, shown));
		else
			parser_refuse(p, ERROR_ARG, "unexpected word %s: %s", text_shown(word, shown), usage(p->request->verb, form));
		return;
	}
	p->request->word[p->request->words++] = word;
	if (command->kind == WORD_NAME)
		name_check(p, word);
	else if (command->kind == WORD_TAG)
		tag_check(p, word);
}

#define SENSELESS DURATION_MALFORMED
#define NO_UNIT   DURATION_NO_UNIT
#define BEYOND    DURATION_TOO_LARGE

static int64_t bool_parse(struct span text)
{
	if (span_equal(text, SPAN("yes")))
		return 1;
	return span_equal(text, SPAN("no")) ? 0 : SENSELESS;
}

static int64_t duration_value(const struct field_row *row, struct span text)
{
	int64_t number = duration_parse(text);

	if (number == DURATION_TOO_LARGE)
		number = DURATION_LONGEST;
	return number > row->most ? BEYOND : number;
}

/* Returns the value as a number, 0 for text. SENSELESS: not of its type; BEYOND: above the limit of its row; NO_UNIT: a duration without a unit. */
static int64_t value_parse(const struct field_row *row, struct span text)
{
	switch (row->type) {
	case VALUE_TEXT:
		return text.n <= (size_t)row->most ? 0 : BEYOND;
	case VALUE_TRACE:
		return trace_is_sound(text) ? 0 : SENSELESS;
	case VALUE_WAIT:
		return span_equal(text, SPAN("forever")) ? WAIT_FOREVER : duration_value(row, text);
	case VALUE_DURATION:
		return duration_value(row, text);
	case VALUE_BOOL:
		return bool_parse(text);
	case VALUE_COUNT:
	case VALUE_PRIORITY:
		return count_parse(text, row->most);
	case VALUE_MODE:
		return span_equal(text, SPAN("exclusive")) ? MODE_EXCLUSIVE : span_equal(text, SPAN("shared")) ? MODE_SHARED : SENSELESS;
	default:
		return SENSELESS;
	}
}

static void value_refuse(struct parser *p, const struct field_row *row, struct span text, int64_t wrong)
{
	char shown[SHOWN_MAX], bound[32];

	if (wrong == NO_UNIT) {
		text_shown(text, shown);
		parser_refuse(p, ERROR_ARG, "%s=%s: a duration needs a unit (did you mean %.*ss?)", row->word, shown, (int)(text.n < 24 ? text.n : 24), text.p);
	} else if (row->type == VALUE_COUNT) {
		parser_refuse(p, ERROR_ARG, "%s=%s: %s is a whole number from 0 to %lld", row->word, text_shown(text, shown), row->word,
			      (long long)row->most);
	} else if (wrong == SENSELESS) {
		parser_refuse(p, ERROR_ARG, "%s=%s: %s is %s", row->word, text_shown(text, shown), row->word,
			      value_table[row->type].meaning);
	} else if (row->type == VALUE_TEXT) {
		parser_refuse(p, ERROR_LIMIT, "%s may have at most %lld bytes; this one has %zu", row->word, (long long)row->most, text.n);
	} else {
		duration_format(row->most, bound);
		parser_refuse(p, ERROR_LIMIT, "%s may be at most %s%s; asked for %s", row->word, bound, row->type == VALUE_WAIT ? ", or forever" : "",
			      text_shown(text, shown));
	}
}

/* Returns what to do without a field that the request had in an earlier version; NULL: it never had it. */
static const char *field_former(enum verb verb, struct span name)
{
	if (verb == VERB_ACQUIRE && span_equal(name, SPAN("weight")))
		return "a permit is one slot: ACQUIRE once for each, and hold a LOCK meanwhile, so that no two clients wait for each other";
	return NULL;
}

/* Refuses a field that the request does not have: a former one, a misspelt one, or a word with '=' that must be quoted. */
static void __attribute__((noinline)) field_refuse(struct parser *p, struct span name)
{
	const struct command *command = &command_table[p->request->verb];
	const char *former = field_former(p->request->verb, name), *near = field_nearest(name, command->fields);
	char shown[SHOWN_MAX], form[USAGE_MAX];

	text_shown(name, shown);
	if (former)
		parser_refuse(p, ERROR_ARG, "%s has no field %s; %s", command->word, shown, former);
	else if (near)
		parser_refuse(p, ERROR_ARG, "%s has no field %s (did you mean %s?)", command->word, shown, near);
	else if (p->request->words < command->most)
		parser_refuse(p, ERROR_ARG, "%s has no field %s; a word that holds '=' must be quoted: %s", command->word, shown,
			      usage(p->request->verb, form));
	else
		parser_refuse(p, ERROR_ARG, "%s has no field %s: %s", command->word, shown, usage(p->request->verb, form));
}

static void parser_field(struct parser *p, const struct token *token)
{
	struct request *r = p->request;
	enum field field = field_find(token->text);
	const struct field_row *row = &field_table[field];
	int64_t number;

	if (field == FIELD_N || !((command_table[r->verb].fields >> field) & 1)) {
		field_refuse(p, token->text);
		return;
	}
	if (request_has(r, field)) {
		parser_refuse(p, ERROR_ARG, "field %s is given twice", row->word);
		return;
	}
	number = value_parse(row, token->value);
	if (number < 0) {
		value_refuse(p, row, token->value, number);
		return;
	}
	r->given |= UINT32_C(1) << field;
	r->field[field] = (struct value){token->value, number};
}

static void parser_token(struct parser *p, const struct token *token)
{
	if (!p->tag_read && parser_takes_tag(p, token))
		return;
	if (!p->verb_read)
		parser_verb(p, token);
	else if (token->is_field)
		parser_field(p, token);
	else
		parser_word(p, token->text);
}

/* The checks at the end of the line. */
static void parser_end(struct parser *p)
{
	const struct command *command;
	char form[USAGE_MAX];
	uint32_t lacks;

	if (!p->verb_read) {
		parser_refuse(p, ERROR_ARG, "a tag without a request");
		return;
	}
	command = &command_table[p->request->verb];
	lacks = command->required & ~p->request->given;
	if (p->request->words < command->least)
		parser_refuse(p, ERROR_ARG, "a word is missing, %s wants %s: %s", command->word, command->words, usage(p->request->verb, form));
	else if (lacks)
		parser_refuse(p, ERROR_ARG, "%s= is missing: %s", field_table[__builtin_ctz(lacks)].word, usage(p->request->verb, form));
}

static struct span line_begin(const char *line, size_t n)
{
	for (; n > 0 && (*line == ' ' || *line == '\t'); line++)
		n--;
	return (struct span){line, n};
}

bool line_is_tagged(const char *line, size_t n)
{
	struct span text = line_begin(line, n);
	size_t end = 1;

	if (text.n == 0 || text.p[0] != '@')
		return false;
	while (end < text.n && text.p[end] != ' ' && text.p[end] != '\t' && !(text.p[end] == '\r' && end + 1 == text.n))
		end++;
	return tag_valid((struct span){text.p + 1, end - 1});
}

/* For lines that are not requests. PARSE_HTTP: the peer speaks HTTP. If a valid request looks like HTTP, the core handles that: see command.c. */
static enum parse_outcome error_outcome(const char *line, size_t n)
{
	return foreign_of(line, n) == FOREIGN_HTTP ? PARSE_HTTP : PARSE_ERROR;
}

enum parse_outcome request_parse(char *line, size_t n, struct request *ret_request, struct parse_error *ret_parse_error)
{
	struct parser parser = {
		.request = ret_request, .parse_error = ret_parse_error, .tagged = span_starts(line_begin(line, n), SPAN("@"))};
	struct cursor cursor = cursor_over(line, n);
	struct token token;
	enum split split;

	ret_request->tag = SPAN("");
	ret_request->verb = VERB_N;
	ret_request->words = 0;
	ret_request->given = 0;
	if (n > 0 && line[0] == '#')
		return PARSE_EMPTY;
	while ((split = token_next(&cursor, &token)) == SPLIT_TOKEN)
		if (!parser.failed)
			parser_token(&parser, &token);
	if (split != SPLIT_END) {
		parser_refuse(&parser, ERROR_SYNTAX, "%s", split_text(split));
		return error_outcome(line, n);
	}
	if (!parser.tag_read)
		return PARSE_EMPTY;
	if (!parser.failed)
		parser_end(&parser);
	return parser.failed ? error_outcome(line, n) : PARSE_OK;
}
