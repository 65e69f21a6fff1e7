/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value of one key: parses it from text or YAML, compares and frees it. A refused value never changes its field.
 */
#include "conf/internal.h"

#include "proto/proto.h"
#include "proto/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(enum conf_store) == sizeof(int) && sizeof(enum conf_guard) == sizeof(int) && sizeof(enum conf_unix_mode) == sizeof(int) &&
		       sizeof(enum conf_home_lost) == sizeof(int),
	       "a CHOICE is as wide as int");

/* redis.node and redis.nodes are one value. */
#define NODES_SIZE (sizeof(((struct conf *)0)->redis.node) + sizeof(((struct conf *)0)->redis.nodes))
_Static_assert(offsetof(struct conf, redis.nodes) == offsetof(struct conf, redis.node) + sizeof(((struct conf *)0)->redis.node), "they stand together");

static void *field_of(struct conf *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

/* Writes the reason for text of another type or beyond the range of the key. hint: "" or the probable intention. */
static int range_refuse(const struct setting *s, const char *text, const char *hint, char why[WHY_MAX])
{
	char range[RANGE_MAX], show[SHOW_MAX];

	return value_refuse(why, "%s is %s, not '%s'%s", s->path, setting_range(s, range), text_show(text, show), hint);
}

static int bool_parse(const struct setting *s, const char *text, bool *ret_on, char why[WHY_MAX])
{
	int word = alternative_find("no|yes|false|true|off|on", text);

	if (word < 0)
		return range_refuse(s, text, "", why);
	*ret_on = word & 1;
	return 0;
}

/* Whether the text is "no", for a field that accepts "no" besides its values. */
static bool means_no(const char *text)
{
	int word = alternative_find("no|yes|false|true|off|on", text);

	return word >= 0 && !(word & 1);
}

static int choice_parse(const struct setting *s, const char *text, int *ret_choice, char why[WHY_MAX])
{
	int choice = alternative_find(s->words, text);

	if (choice < 0)
		return range_refuse(s, text, "", why);
	memcpy(ret_choice, &choice, sizeof(choice));
	return 0;
}

/* Parses bytes: "512", "8k", "4m", "1g". -1: it is not a size, or too large. */
static int64_t size_parse(const char *text)
{
	static const char units[] = "kmg";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] ? strchr(units, text[digits] | 0x20) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	int64_t number;

	if (text[digits] && (!unit || text[digits + 1]))
		return -1;
	number = count_parse((struct span){text, digits}, INT64_MAX >> shift);
	return number < 0 ? -1 : number << shift;
}

/* Parses a count, a size or a duration. Negative: it is not one, or too large. */
static int64_t number_parse(enum setting_type type, const char *text)
{
	if (type == TYPE_DURATION)
		return duration_parse(span_of(text));
	return type == TYPE_SIZE ? size_parse(text) : count_parse(span_of(text), INT64_MAX);
}

/* All these fields have 64 bits. */
static int bounded_parse(const struct setting *s, const char *text, int64_t *ret_number, char why[WHY_MAX])
{
	int64_t number = number_parse(s->type, text);
	char hint[SHOW_MAX + 32] = "", show[SHOW_MAX];

	assert(s->given && s->low && s->high);
	if (s->type == TYPE_DURATION && number == DURATION_NO_UNIT)
		snprintf(hint, sizeof(hint), " (did you mean %s%s?)", text_show(text, show), s->given + strspn(s->given, "0123456789"));
	if (number < number_parse(s->type, s->low) || number > number_parse(s->type, s->high))
		return range_refuse(s, text, hint, why);
	memcpy(ret_number, &number, sizeof(number));
	return 0;
}

static void text_replace(char **field, const char *text)
{
	free(*field);
	*field = conf_strdup(text);
}

static int text_parse(const struct setting *s, const char *text, char **ret_field, char why[WHY_MAX])
{
	int64_t n = (int64_t)strlen(text);

	assert(s->low && s->high);
	if (n < count_parse(span_of(s->low), INT64_MAX) || n > count_parse(span_of(s->high), INT64_MAX) || (s->type == TYPE_FOLDER && *text != '/'))
		return range_refuse(s, text, "", why);
	text_replace(ret_field, text);
	return 0;
}

static int socket_parse(const struct setting *s, const char *text, char **ret_field, char why[WHY_MAX])
{
	if (means_no(text)) {
		text_replace(ret_field, "");
		return 0;
	}
	if (!strncmp(text, "unix:", 5))
		text += 5;
	if (!strchr(text, '/'))
		return range_refuse(s, text, "", why);
	return text_parse(s, text, ret_field, why);
}

static int listen_parse(struct conf *c, const struct setting *s, const char *text, char why[WHY_MAX])
{
	char *host = NULL;
	uint16_t port = 0;

	if (!means_no(text) && listener_parse(text, means_no(s->given) ? "127.0.0.1:7422" : s->given, &host, &port, why))
		return VALUE_BAD;
	free(*(char **)field_of(c, s));
	*(char **)field_of(c, s) = host;
	*(s->key == KEY_LISTEN_TLS ? &c->listen.tls_port : &c->listen.tcp_port) = port;
	return 0;
}

static int web_parse(const char *text, struct conf_address *ret_field, char why[WHY_MAX])
{
	struct conf_address a = {0};

	if (!means_no(text) && web_address_parse(text, &a, why))
		return VALUE_BAD;
	address_release(ret_field);
	*ret_field = a;
	return 0;
}

int conf_value_parse(struct conf *c, const struct setting *s, const char *text, char why[WHY_MAX])
{
	switch (s->type) {
	case TYPE_BOOL:
		return bool_parse(s, text, field_of(c, s), why);
	case TYPE_CHOICE:
		return choice_parse(s, text, field_of(c, s), why);
	case TYPE_COUNT:
	case TYPE_SIZE:
	case TYPE_DURATION:
		return bounded_parse(s, text, field_of(c, s), why);
	case TYPE_TEXT:
	case TYPE_FILENAME:
	case TYPE_FOLDER:
		return text_parse(s, text, field_of(c, s), why);
	case TYPE_SOCKET:
		return socket_parse(s, text, field_of(c, s), why);
	case TYPE_LISTENER:
		return listen_parse(c, s, text, why);
	case TYPE_WEB:
		return web_parse(text, field_of(c, s), why);
	case TYPE_HOSTS:
	case TYPE_NODES:
	case TYPE_RULES:
	case TYPE_GROUPS:
		break;
	}
	return value_refuse(why, "%s is no single value, but as in %s", s->path, s->example);
}

/* Reads host names, and separates them by blanks. */
static char *hosts_read(struct yaml *y, const yaml_node_t *list, const struct setting *s)
{
	char *hosts = conf_strdup(""), *longer, show[SHOW_MAX], range[RANGE_MAX];
	int64_t count = list->data.sequence.items.top - list->data.sequence.items.start;

	if (count < 1 || count > count_parse(span_of(s->high), INT64_MAX))
		complain(y, list, "%s is %s", s->path, setting_range(s, range));
	for (int64_t i = 0; i < count; i++) {
		const yaml_node_t *item = yaml_node(y, list->data.sequence.items.start[i]);
		const char *name = yaml_text(y, item, "a host name is a word");

		if (name && !host_is_name(name))
			complain(y, item, "'%s' is no host name; it has no port and no blank, as in %s", text_show(name, show), s->example);
		if (asprintf(&longer, "%s%s%s", hosts, *hosts ? " " : "", name ? name : "") < 0)
			abort();
		free(hosts);
		hosts = longer;
	}
	return hosts;
}

static size_t value_size(enum setting_type type)
{
	switch (type) {
	case TYPE_BOOL:
		return sizeof(bool);
	case TYPE_CHOICE:
		return sizeof(int);
	case TYPE_COUNT:
	case TYPE_SIZE:
	case TYPE_DURATION:
		return sizeof(int64_t);
	case TYPE_NODES:
		return NODES_SIZE;
	default:
		return sizeof(char *);
	}
}

static void field_swap(struct conf *a, struct conf *b, const struct setting *s)
{
	char kept[NODES_SIZE];
	size_t n = value_size(s->type);

	memcpy(kept, field_of(a, s), n);
	memcpy(field_of(a, s), field_of(b, s), n);
	memcpy(field_of(b, s), kept, n);
}

void conf_value_swap(struct conf *a, struct conf *b, const struct setting *s)
{
	struct conf_origin origin = a->origin[s->key];

	field_swap(a, b, s);
	a->origin[s->key] = b->origin[s->key];
	b->origin[s->key] = origin;
}

/* Numbers are compared as numbers: 60s is 1m. Other values are equal if their text is the same. */
bool conf_value_equal(const struct conf *a, const struct conf *b, const struct setting *s)
{
	const char *one = a->origin[s->key].written, *other = b->origin[s->key].written;

	if (s->type <= TYPE_DURATION)
		return !memcmp((const char *)a + s->offset, (const char *)b + s->offset, value_size(s->type));
	return one && other ? !strcmp(one, other) : one == other;
}

void conf_value_release(struct conf *c, const struct setting *s)
{
	char **text = field_of(c, s);

	if (s->type == TYPE_WEB) {
		address_release(field_of(c, s));
	} else if (s->type == TYPE_NODES) {
		for (; c->redis.nodes > 0; c->redis.nodes--)
			address_release(&c->redis.node[c->redis.nodes - 1]);
	} else if (s->type == TYPE_RULES) {
		rules_free(c->rules);
		c->rules = NULL;
	} else if (s->type > TYPE_DURATION) {
		free(*text);
		*text = NULL;
	}
}

void origin_set(struct conf *c, enum conf_key key, const struct conf_source *source, struct source_place place, char *written)
{
	struct conf_origin *o = &c->origin[key];

	free(o->written);
	*o = (struct conf_origin){.source = source, .line = place.line, .column = place.column, .written = written};
}

/* Reads a list or a mapping whose YAML type was checked. */
static void list_read(struct conf *c, const struct setting *s, struct yaml *y, const yaml_node_t *node)
{
	unsigned before = y->report->errors;
	struct conf fresh = {0};

	if (s->type == TYPE_NODES)
		fresh.redis.nodes = nodes_read(y, node, fresh.redis.node);
	else if (s->type == TYPE_RULES)
		fresh.rules = rules_read(y, node);
	else if (s->type == TYPE_GROUPS)
		fresh.metrics.groups = groups_read(y, node);
	else
		fresh.http.hosts = hosts_read(y, node, s);
	if (y->report->errors == before)
		field_swap(c, &fresh, s);
	conf_value_release(&fresh, s);
}

static void scalar_read(struct conf *c, const struct setting *s, struct yaml *y, const yaml_node_t *node, const char *rule)
{
	const char *text = yaml_text(y, node, rule);
	char why[WHY_MAX];

	if (text && conf_value_parse(c, s, text, why))
		complain(y, node, "%s", why);
}

void conf_value_read(struct conf *c, const struct setting *s, struct yaml *y, const yaml_node_t *node)
{
	unsigned before = y->report->errors;
	char rule[WHY_MAX], range[RANGE_MAX];

	snprintf(rule, sizeof(rule), "%s is %s, as in %s", s->path, setting_range(s, range), s->given ? s->given : s->example);
	if (s->type == TYPE_NODES || s->type == TYPE_RULES || s->type == TYPE_HOSTS || s->type == TYPE_GROUPS) {
		if (yaml_is(y, node, s->type == TYPE_GROUPS ? YAML_MAPPING_NODE : YAML_SEQUENCE_NODE, rule))
			list_read(c, s, y, node);
	} else {
		scalar_read(c, s, y, node, rule);
	}
	if (y->report->errors == before)
		origin_set(c, s->key, y->source, yaml_place(y, node), yaml_line(y, node));
	else
		c->origin[s->key].bad = true;
}
