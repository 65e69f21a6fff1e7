/* SPDX-License-Identifier: BSD-2-Clause */
/* After a mistake reading goes on, so one run reports all mistakes. */
#include "conf/sentinel.h"

#include "conf/source.h"
#include "conf/words.h"

#include <stdlib.h>
#include <string.h>

#define SENTINEL_PORT 26379
#define EXAMPLE       "sentinel: {master: locks, addresses: [10.0.0.1:26379]}"

/* One node that is being read. */
struct entry {
	struct yaml *yaml;
	struct conf_address node;
	bool bad;
};

#define complain(e, place, ...)                                                                   \
	do {                                                                                      \
		report_error((e)->yaml->report, (e)->yaml->source, (place), __VA_ARGS__);         \
		(e)->bad = true;                                                                  \
	} while (0)

void sentinel_print(const struct conf_address *node, FILE *out)
{
	const struct conf_sentinel *s = node->sentinel;

	fputc('{', out);
	if (node->name) {
		fputs("name: ", out);
		value_print_text(node->name, out);
		fputs(", ", out);
	}
	fputs("sentinel: {master: ", out);
	value_print_text(s->master, out);
	fputs(", addresses: [", out);
	for (size_t i = 0; i < s->count; i++) {
		fputs(i ? ", " : "", out);
		value_print_text(s->address[i].label, out);
	}
	fputs("]}}", out);
}

/* The present event is the value of a key: a word as sentinels, and names of nodes, have them. NULL: complained. */
static char *word_take(struct entry *e, const char *key)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const yaml_event_t *event = &e->yaml->event;
	const char *text = event->type == YAML_SCALAR_EVENT ? (const char *)event->data.scalar.value : "";
	size_t n = strlen(text);

	if (n >= 1 && n <= NODE_NAME_MAX && n == event->data.scalar.length && !text[strspn(text, letters)] && !yaml_is_null(e->yaml))
		return conf_strdup(text);
	if (event->type != YAML_NO_EVENT)
		complain(e, yaml_place(e->yaml), "%s is 1 to %d characters of A-Z a-z 0-9 . _ -, as in %s: locks", key, NODE_NAME_MAX, key);
	yaml_skip(e->yaml);
	e->bad = true;
	return NULL;
}

static void address_add(struct entry *e, struct conf_sentinel *s, struct conf_address *a)
{
	for (size_t i = 0; i < s->count; i++)
		if (address_equal(&s->address[i], a))
			complain(e, yaml_place(e->yaml), "'%s' stands in the list twice", a->label);
	if (s->count == CONF_SENTINELS_MAX)
		complain(e, yaml_place(e->yaml), "at most %d sentinels", CONF_SENTINELS_MAX);
	if (e->bad)
		address_release(a);
	else
		s->address[s->count++] = *a;
}

/* The present event is an item of addresses. */
static void address_take(struct entry *e, struct conf_sentinel *s)
{
	const yaml_event_t *event = &e->yaml->event;
	const char *text = (const char *)event->data.scalar.value;
	char why[WHY_MAX], show[SHOW_MAX];
	struct conf_address a;
	int r;

	if (event->type != YAML_SCALAR_EVENT || !text_printable(text, event->data.scalar.length)) {
		if (event->type != YAML_ALIAS_EVENT)
			complain(e, yaml_place(e->yaml), "the address of a sentinel is one word, host:port; an IPv6 address must be quoted: \"[::1]:26379\"");
		e->bad = true;
		yaml_skip(e->yaml);
		return;
	}
	r = address_parse(text, &a, why);
	if (r) {
		list_complain(e->yaml, r, why);
		e->bad = true;
		return;
	}
	if (a.path || a.name) {
		complain(e, yaml_place(e->yaml), "'%s' is no address of a sentinel: it is host:port, or host alone (port %d)", text_show(text, show),
		         SENTINEL_PORT);
		address_release(&a);
		return;
	}
	if (!address_has_port(text))
		a.port = SENTINEL_PORT;
	address_add(e, s, &a);
}

static void addresses_take(struct entry *e, struct conf_sentinel *s)
{
	struct source_place start = yaml_place(e->yaml);
	bool before = e->bad;

	if (e->yaml->event.type != YAML_SEQUENCE_START_EVENT) {
		complain(e, start, "addresses is a list, as in addresses: [10.0.0.1:26379]; this is %s", yaml_kind(e->yaml));
		yaml_skip(e->yaml);
		return;
	}
	e->bad = false;
	while (yaml_next(e->yaml) != YAML_SEQUENCE_END_EVENT && !e->yaml->over)
		address_take(e, s);
	if (!s->count && !e->bad && !e->yaml->over)
		complain(e, start, "addresses needs at least one sentinel");
	e->bad |= before;
}

/* Whether the present event is this key. */
static bool key_is(const struct entry *e, const char *key)
{
	const yaml_event_t *event = &e->yaml->event;

	return event->type == YAML_SCALAR_EVENT && strlen(key) == event->data.scalar.length && !strcmp(key, (const char *)event->data.scalar.value);
}

/* The present event is a key that is not there, or is there already. */
static void key_refuse(struct entry *e, const char *rule)
{
	const yaml_event_t *event = &e->yaml->event;
	const char *text = event->type == YAML_SCALAR_EVENT ? (const char *)event->data.scalar.value : yaml_kind(e->yaml);
	char show[SHOW_MAX];

	if (event->type == YAML_SCALAR_EVENT && !text_printable(text, event->data.scalar.length))
		text = "?";
	complain(e, yaml_place(e->yaml), "%s, not '%s', as in %s", rule, text_show(text, show), EXAMPLE);
	yaml_skip(e->yaml);
	yaml_next(e->yaml);
	yaml_skip(e->yaml);
}

/* The present event begins the value of sentinel. */
static void sentinel_take(struct entry *e)
{
	struct conf_sentinel *s = e->node.sentinel = conf_alloc(sizeof(*s));
	struct source_place start = yaml_place(e->yaml);
	bool listed = false, named = false;

	if (e->yaml->event.type != YAML_MAPPING_START_EVENT) {
		complain(e, start, "sentinel is a mapping, as in %s; this is %s", EXAMPLE, yaml_kind(e->yaml));
		yaml_skip(e->yaml);
		return;
	}
	while (yaml_next(e->yaml) != YAML_MAPPING_END_EVENT && !e->yaml->over) {
		if (key_is(e, "master") && !named) {
			named = true;
			yaml_next(e->yaml);
			s->master = word_take(e, "master");
		} else if (key_is(e, "addresses") && !listed) {
			listed = true;
			yaml_next(e->yaml);
			addresses_take(e, s);
		} else {
			key_refuse(e, "sentinel has master and addresses, each once");
		}
	}
	if (!e->yaml->over && (!named || !listed))
		complain(e, start, "sentinel needs %s, as in %s", named ? "addresses" : "master", EXAMPLE);
}

/* What logs and lists call the node does not change with a fail-over. */
static char *label_of(const struct conf_address *node)
{
	char label[NODE_NAME_MAX + 16];

	snprintf(label, sizeof(label), "sentinel:%s", node->name ? node->name : node->sentinel->master);
	return conf_strdup(label);
}

int sentinel_read(struct yaml *y, struct conf_address *ret_node)
{
	struct entry e = {.yaml = y};
	struct source_place start = yaml_place(y);

	while (yaml_next(y) != YAML_MAPPING_END_EVENT && !y->over) {
		if (key_is(&e, "name") && !e.node.name) {
			yaml_next(y);
			e.node.name = word_take(&e, "name");
		} else if (key_is(&e, "sentinel") && !e.node.sentinel) {
			yaml_next(y);
			sentinel_take(&e);
		} else {
			key_refuse(&e, "a node is one word, host:port without a blank, or has sentinel and perhaps name, each once");
		}
	}
	if (!e.node.sentinel && !e.bad && !y->over)
		complain(&e, start, "a node is an address, or what sentinels tell, as in %s", EXAMPLE);
	if (e.bad || y->over) {
		address_release(&e.node);
		return VALUE_BAD;
	}
	e.node.label = label_of(&e.node);
	*ret_node = e.node;
	return 0;
}
