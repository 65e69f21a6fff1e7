/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees of libyaml. Marks of libyaml count characters from zero; ours count from one. This file does not know any key.
 */
#include "conf/yaml.h"

#include "conf/words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct source_place mark_place(const struct yaml *y, yaml_mark_t mark)
{
	unsigned skipped = mark.line ? 0 : (unsigned)y->from;

	return (struct source_place){(unsigned)mark.line + 1, (unsigned)mark.column + 1 + skipped};
}

struct source_place yaml_place(const struct yaml *y, const yaml_node_t *node)
{
	return mark_place(y, node->start_mark);
}

/* Returns a hint that the message of libyaml lacks, about usual syntax mistakes with addresses. */
static const char *syntax_hint(const struct yaml *y, const yaml_parser_t *p, const char *context, char out[SHOW_MAX])
{
	struct source_place place = mark_place(y, p->problem_mark);
	size_t n;
	uint32_t rune;
	const char *line = source_line(y->source, place.line, &n);

	if (!strcmp(context, "while scanning an alias") || !strcmp(p->problem, "found undefined alias"))
		return "; a value that begins with '*' must be quoted";
	if (strstr(context, "flow") && memmem(line, n, "::", 2))
		return "; an IPv6 address must be quoted: \"[::1]:6379\"";
	out[0] = '\0';
	if (lookalike_find(line, n, true, &rune) < n)
		snprintf(out, SHOW_MAX, "; U+%04X in this line looks like %s, and is none", (unsigned)rune, lookalike_name(lookalike_of(rune)));
	return out;
}

static void syntax_report(struct yaml *y, const yaml_parser_t *p)
{
	const char *context = p->context ? p->context : "";
	bool at_end = strstr(p->problem, "end of stream") && *context; /* the end has no useful place, so the place of the open construct is shown */
	struct source_place place = mark_place(y, at_end ? p->context_mark : p->problem_mark);
	char hint[SHOW_MAX], begins[64] = "";

	if (!at_end && *context && p->context_mark.line != p->problem_mark.line)
		snprintf(begins, sizeof(begins), " that begins in line %zu", p->context_mark.line + 1);
	report_error(y->report, y->source, place, "%s%s%s%s%s", p->problem, *context ? " " : "", context, begins, syntax_hint(y, p, context, hint));
}

/* With more of these, libyaml needs seconds, and the daemon would stand still during a reload. */
#define DEPTH_MOST   100
#define ANCHORS_MOST 100

struct census {
	unsigned depth, anchors;
};

static const char *event_excess(const yaml_event_t *e, struct census *c)
{
	bool begins = e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
	const yaml_char_t *anchor = e->type == YAML_SCALAR_EVENT           ? e->data.scalar.anchor
				    : e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.anchor
				    : e->type == YAML_MAPPING_START_EVENT  ? e->data.mapping_start.anchor
									   : NULL;

	c->depth -= e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;
	c->depth += begins;
	c->anchors += anchor || e->type == YAML_ALIAS_EVENT;
	return c->depth > DEPTH_MOST ? "nested more than 100 deep" : c->anchors > ANCHORS_MOST ? "more than 100 anchors and aliases" : NULL;
}

static void parser_begin(const struct yaml *y, yaml_parser_t *parser)
{
	if (!yaml_parser_initialize(parser))
		abort();
	yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(parser, (const unsigned char *)y->source->text + y->from, y->source->n - y->from);
}

/* False: it was refused. Text that is not YAML is left to document_load. */
static bool is_moderate(struct yaml *y)
{
	struct census census = {0};
	const char *excess = NULL;
	yaml_parser_t parser;
	yaml_event_t event;
	bool more = true;

	parser_begin(y, &parser);
	while (more && !excess && yaml_parser_parse(&parser, &event)) {
		more = event.type != YAML_STREAM_END_EVENT;
		excess = event_excess(&event, &census);
		if (excess)
			report_error(y->report, y->source, mark_place(y, event.start_mark), "%s", excess);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return !excess;
}

static bool document_load(struct yaml *y, yaml_parser_t *parser, yaml_document_t *document)
{
	if (yaml_parser_load(parser, document))
		return true;
	if (!parser->problem)
		abort(); /* no memory */
	syntax_report(y, parser);
	return false;
}

/* Whether there is no second document. */
static bool is_alone(struct yaml *y, yaml_parser_t *parser)
{
	yaml_document_t second;
	const yaml_node_t *root;

	if (!document_load(y, parser, &second))
		return false;
	root = yaml_document_get_root_node(&second);
	if (root)
		complain(y, root, "a second document begins here; a configuration is one");
	yaml_document_delete(&second);
	return !root;
}

bool yaml_open(struct yaml *y, struct conf_report *report, const struct conf_source *source, size_t from)
{
	yaml_parser_t parser;
	bool sound;

	*y = (struct yaml){.report = report, .source = source, .from = from};
	if (!is_moderate(y))
		return false;
	parser_begin(y, &parser);
	sound = document_load(y, &parser, &y->document) && (!yaml_root(y) || is_alone(y, &parser));
	yaml_parser_delete(&parser);
	return sound;
}

void yaml_close(struct yaml *y)
{
	yaml_document_delete(&y->document);
}

yaml_node_t *yaml_root(struct yaml *y)
{
	return yaml_document_get_root_node(&y->document);
}

yaml_node_t *yaml_node(struct yaml *y, int index)
{
	return yaml_document_get_node(&y->document, index);
}

bool yaml_is_null(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	return !*text || !strcmp(text, "~") || !strcasecmp(text, "null");
}

const char *yaml_kind(const yaml_node_t *node)
{
	if (node->type == YAML_SEQUENCE_NODE)
		return "a list";
	if (node->type == YAML_MAPPING_NODE)
		return "a mapping";
	return yaml_is_null(node) ? "no value" : "a single value";
}

/* Without ASCII quotes, a value includes pasted quotes and blanks that only look like ASCII. False: it has complained. */
static bool is_plain_ascii(struct yaml *y, const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;
	struct source_place place = yaml_place(y, node);
	size_t n = node->data.scalar.length;
	uint32_t rune;
	size_t at = lookalike_find(text, n, false, &rune);

	if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || at == n)
		return true;
	place.column += (unsigned)utf8_count(text, at);
	report_error(y->report, y->source, place, "U+%04X looks like %s, and is none: type it anew", (unsigned)rune, lookalike_name(lookalike_of(rune)));
	return false;
}

bool yaml_is(struct yaml *y, const yaml_node_t *node, yaml_node_type_t type, const char *rule)
{
	if (node->type == type)
		return true;
	if (node->type != YAML_SCALAR_NODE || is_plain_ascii(y, node)) /* a false blank after the colon turns a key into a single value */
		complain(y, node, "%s; this is %s", rule, yaml_kind(node));
	return false;
}

const char *yaml_text(struct yaml *y, const yaml_node_t *node, const char *rule)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE || yaml_is_null(node)) {
		complain(y, node, "%s; this is %s", rule, yaml_kind(node));
		return NULL;
	}
	if (node->start_mark.line != node->end_mark.line) {
		complain(y, node, "this value goes on in the next line; a key stands in a line of its own, with the same indent as its neighbours");
		return NULL;
	}
	if (strcmp((const char *)node->tag, YAML_STR_TAG) != 0) {
		complain(y, node, "tags have no use here: each key knows the type of its value");
		return NULL;
	}
	if (!is_plain_ascii(y, node))
		return NULL;
	/* An escape such as "\0" or "\n" may produce characters that the file itself may not contain. */
	if (text_printable(text, node->data.scalar.length))
		return text;
	complain(y, node, "this text holds a control character");
	return NULL;
}

static bool field_is(const yaml_node_t *key, const char *word)
{
	return key->type == YAML_SCALAR_NODE && strlen(word) == key->data.scalar.length && !strcmp(word, (const char *)key->data.scalar.value);
}

void yaml_fields(struct yaml *y, const yaml_node_t *mapping, const char *const *word, size_t words, const char *rule, yaml_node_t **ret_value)
{
	char show[SHOW_MAX];

	for (size_t i = 0; i < words; i++)
		ret_value[i] = NULL;
	for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_node(y, pair->key);
		size_t i = 0;

		while (i < words && !field_is(key, word[i]))
			i++;
		if (i < words && !ret_value[i])
			ret_value[i] = yaml_node(y, pair->value);
		else
			complain(y, key, "'%s' has no place: %s",
			         key->type == YAML_SCALAR_NODE ? text_show((const char *)key->data.scalar.value, show) : yaml_kind(key), rule);
	}
}

/* NOLINTBEGIN(misc-no-recursion): what was read has few levels. */
static void node_print(struct yaml *y, const yaml_node_t *node, FILE *out)
{
	const char *comma = "";

	switch (node->type) {
	case YAML_SEQUENCE_NODE:
		fputc('[', out);
		for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++, comma = ", ") {
			fputs(comma, out);
			node_print(y, yaml_node(y, *item), out);
		}
		fputc(']', out);
		break;
	case YAML_MAPPING_NODE:
		fputc('{', out);
		for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++, comma = ", ") {
			fputs(comma, out);
			node_print(y, yaml_node(y, pair->key), out);
			fputs(": ", out);
			node_print(y, yaml_node(y, pair->value), out);
		}
		fputc('}', out);
		break;
	default:
		text_print((const char *)node->data.scalar.value, out);
	}
}
/* NOLINTEND(misc-no-recursion) */

char *yaml_line(struct yaml *y, const yaml_node_t *node)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	node_print(y, node, out);
	if (fclose(out))
		abort();
	return text;
}
