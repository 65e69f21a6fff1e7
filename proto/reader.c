/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a line as a client does, in place. It skips unknown fields and words, which later versions may add, and never refuses
 * a line because of them.
 */
#include "proto/proto.h"
#include "proto/text.h"
#include "proto/token.h"

struct span line_kind_word(enum line_kind kind)
{
	static const char *const word[] = {
		[LINE_OK] = "OK", [LINE_BUSY] = "BUSY", [LINE_TIMEOUT] = "TIMEOUT", [LINE_ERR] = "ERR", [LINE_ROW] = "*", [LINE_PUSH] = "!"};

	return span_of(word[kind]);
}

static bool kind_find(struct span word, enum line_kind *ret_kind)
{
	for (*ret_kind = LINE_OK; *ret_kind <= LINE_PUSH; ++*ret_kind)
		if (span_equal(word, line_kind_word(*ret_kind)))
			return true;
	return false;
}

/* Takes the bytes up to the next blank. The words before the fields are never quoted. */
static struct span word_take(struct cursor *c)
{
	char *start;

	while (c->at < c->end && *c->at == ' ')
		c->at++;
	for (start = c->at; c->at < c->end && *c->at != ' ';)
		c->at++;
	return (struct span){start, (size_t)(c->at - start)};
}

static struct span rest_take(struct cursor *c)
{
	while (c->at < c->end && *c->at == ' ')
		c->at++;
	return (struct span){c->at, (size_t)(c->end - c->at)};
}

static int fields_take(struct cursor *c, struct reply_line *line)
{
	struct token token;
	enum split split;

	while ((split = token_next(c, &token)) == SPLIT_TOKEN) {
		if (!token.is_field || line->fields == REPLY_FIELDS_MAX)
			continue;
		line->field[line->fields].name = token.text;
		line->field[line->fields++].value = token.value;
	}
	return split == SPLIT_END ? 0 : -1;
}

int reply_parse(char *line, size_t n, struct reply_line *ret_line)
{
	struct cursor cursor = cursor_over(line, n);
	struct span word = word_take(&cursor);

	ret_line->tag = ret_line->code = ret_line->text = SPAN("");
	ret_line->fields = 0;
	if (word.n > 0 && word.p[0] == '@') {
		ret_line->tag = (struct span){word.p + 1, word.n - 1};
		if (!tag_valid(ret_line->tag))
			return -1;
		word = word_take(&cursor);
	}
	if (!kind_find(word, &ret_line->kind))
		return 1;
	if (ret_line->kind == LINE_ERR || ret_line->kind == LINE_PUSH) {
		ret_line->code = word_take(&cursor);
		if (ret_line->code.n == 0)
			return ret_line->kind == LINE_PUSH ? 1 : -1;
	}
	if (ret_line->kind != LINE_ERR)
		return fields_take(&cursor, ret_line);
	ret_line->text = rest_take(&cursor);
	return 0;
}

struct span reply_find(const struct reply_line *line, const char *field)
{
	struct span name = span_of(field);

	for (unsigned i = 0; i < line->fields; i++)
		if (span_equal(line->field[i].name, name))
			return line->field[i].value;
	return (struct span){NULL, 0};
}

int64_t reply_number(const struct reply_line *line, const char *field, int64_t otherwise)
{
	struct span text = reply_find(line, field);
	bool minus = text.n > 0 && text.p[0] == '-';
	int64_t number;

	if (minus)
		text = (struct span){text.p + 1, text.n - 1};
	number = count_parse(text, INT64_MAX);
	if (number < 0)
		return otherwise;
	return minus ? -number : number;
}
