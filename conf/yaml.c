/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters the events of libyaml. libyaml's marks count characters from zero; ours count from one. Nothing here knows a key.
 */
#include "conf/yaml.h"

#include "conf/address.h"
#include "conf/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct source_place mark_place(const struct yaml *y, yaml_mark_t mark)
{
	unsigned column = (unsigned)mark.column + 1;

	if (!mark.line)
		column += (unsigned)y->skipped;
	return (struct source_place){(unsigned)mark.line + 1, column};
}

void yaml_open(struct yaml *y, struct conf_report *report, const struct conf_source *source, size_t from, size_t to)
{
	*y = (struct yaml){.report = report, .source = source, .skipped = from};
	if (!yaml_parser_initialize(&y->parser))
		abort();
	yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&y->parser, (const unsigned char *)source->text + from, to - from);
}

void yaml_close(struct yaml *y)
{
	yaml_event_delete(&y->event);
	yaml_parser_delete(&y->parser);
}

struct source_place yaml_place(const struct yaml *y)
{
	return mark_place(y, y->event.start_mark);
}

/* A hint that libyaml's message lacks: the usual syntax mistakes with addresses. */
static const char *syntax_hint(const struct yaml *y, const char *context, char out[SHOW_MAX])
{
	struct source_place place = mark_place(y, y->parser.problem_mark);
	size_t n;
	uint32_t rune;
	const char *line = source_line(y->source, place.line, &n);

	if (!strcmp(context, "while scanning an alias"))
		return "; a value that begins with '*' must be quoted";
	if (strstr(context, "flow") && memmem(line, n, "::", 2))
		return "; an IPv6 address must be quoted: \"[::1]:6379\"";
	out[0] = '\0';
	if (lookalike_find(line, n, true, &rune) < n)
		snprintf(out, SHOW_MAX, "; U+%04X in this line looks like %s, and is none", (unsigned)rune, lookalike_name(lookalike_of(rune)));
	return out;
}

/* Reports a syntax error. Nothing further is read, because the meaning of the rest is unknown. */
static void syntax_report(struct yaml *y)
{
	const yaml_parser_t *p = &y->parser;
	const char *problem = p->problem ? p->problem : "out of memory", *context = p->context ? p->context : "";
	bool at_end = strstr(problem, "end of stream") && *context; /* the end has no useful place; the place of the open construct is shown */
	struct source_place place = mark_place(y, at_end ? p->context_mark : p->problem_mark);
	char hint[SHOW_MAX];

	if (y->flawed)
		return;
	if (!at_end && *context && p->context_mark.line != p->problem_mark.line)
		report_error(y->report, y->source, place, "%s %s that begins in line %zu%s", problem, context,
			     p->context_mark.line + 1, syntax_hint(y, context, hint));
	else
		report_error(y->report, y->source, place, "%s%s%s%s", problem, *context ? " " : "", context,
			     syntax_hint(y, context, hint));
}

static void node_check(struct yaml *y, const unsigned char *anchor, const unsigned char *tag)
{
	if (anchor)
		report_error(y->report, y->source, yaml_place(y), "anchors have no use here: write the value itself");
	if (tag)
		report_error(y->report, y->source, yaml_place(y), "tags have no use here: each key knows the type of its value");
}

bool yaml_is_continued(const struct yaml *y)
{
	return y->event.start_mark.line != y->event.end_mark.line;
}

/* Without quotes of ASCII a value has the quotes and blanks that it is pasted with. */
static void plain_check(struct yaml *y)
{
	const char *text = (const char *)y->event.data.scalar.value;
	size_t n = y->event.data.scalar.length, at;
	struct source_place place = yaml_place(y);
	uint32_t rune;

	at = lookalike_find(text, n, false, &rune);
	if (at == n)
		return;
	place.column += (unsigned)utf8_count(text, at);
	report_error(y->report, y->source, place, LOOKALIKE_FLAW, (unsigned)rune, lookalike_name(lookalike_of(rune)));
}

static void scalar_check(struct yaml *y)
{
	if (y->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !yaml_is_continued(y))
		plain_check(y);
	node_check(y, y->event.data.scalar.anchor, y->event.data.scalar.tag);
	if (yaml_is_continued(y))
		report_error(y->report, y->source, yaml_place(y),
			     "this value goes on in the next line; a key stands in a line of its own, with the same indent as "
			     "its neighbours");
}

static void event_check(struct yaml *y)
{
	const yaml_event_t *e = &y->event;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		scalar_check(y);
		break;
	case YAML_SEQUENCE_START_EVENT:
		node_check(y, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		node_check(y, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		break;
	case YAML_ALIAS_EVENT:
		report_error(
			y->report, y->source, yaml_place(y),
			"'*' begins an alias, which has no use here: write the value itself, in quotes if it begins with '*'");
		break;
	default:
		break;
	}
}

yaml_event_type_t yaml_next(struct yaml *y)
{
	yaml_event_delete(&y->event);
	y->event.type = YAML_NO_EVENT;
	if (y->over)
		return YAML_NO_EVENT;
	if (!yaml_parser_parse(&y->parser, &y->event)) {
		y->over = true;
		syntax_report(y);
		return YAML_NO_EVENT;
	}
	event_check(y);
	return y->event.type;
}

bool yaml_is_null(const struct yaml *y)
{
	const char *text = (const char *)y->event.data.scalar.value;

	if (y->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	return !*text || !strcmp(text, "~") || !strcasecmp(text, "null");
}

const char *yaml_kind(const struct yaml *y)
{
	switch (y->event.type) {
	case YAML_SEQUENCE_START_EVENT:
		return "a list";
	case YAML_MAPPING_START_EVENT:
		return "a mapping";
	case YAML_ALIAS_EVENT:
		return "an alias";
	default:
		return "a single value";
	}
}

static int depth_change(yaml_event_type_t type)
{
	if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
		return 1;
	return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

void yaml_skip(struct yaml *y)
{
	int depth = depth_change(y->event.type);

	while (depth > 0 && !y->over) {
		depth += depth_change(yaml_next(y));
		if (depth > YAML_DEPTH_MAX) {
			report_error(y->report, y->source, yaml_place(y), "nested deeper than %d", YAML_DEPTH_MAX);
			y->over = true;
		}
	}
}

void list_complain(struct yaml *y, int outcome, const char *why)
{
	if (outcome == VALUE_SECRET)
		report_secret(y->report, y->source, yaml_place(y), "%s", why);
	else
		report_error(y->report, y->source, yaml_place(y), "%s", why);
}
