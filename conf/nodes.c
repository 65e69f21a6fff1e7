/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the Redis servers and their sentinels. It continues after a mistake, so that one run reports all mistakes. */
#include "conf/internal.h"

#include <stdlib.h>
#include <string.h>

#define REDIS_PORT    6379
#define SENTINEL_PORT 26379
#define EXAMPLE       "sentinel: {master: locks, addresses: [10.0.0.1:26379]}"

/* Adds an address to a list, which takes ownership. */
static void address_add(struct yaml *y, const yaml_node_t *item, struct conf_address *list, size_t *count, size_t most, struct conf_address *a)
{
	unsigned before = y->report->errors;

	for (size_t i = 0; i < *count && y->report->errors == before; i++)
		if (address_equal(&list[i], a))
			complain(y, item, "'%s' stands in the list twice", a->label);
		else if (!strcmp(address_name(&list[i]), address_name(a)))
			complain(y, item, "two nodes are called '%s'%s", address_name(a), a->sentinel ? ": put name: beside sentinel:, as in name: red1" : "");
	if (y->report->errors == before && *count == most)
		complain(y, item, "at most %zu addresses", most);
	if (y->report->errors == before)
		list[(*count)++] = *a;
	else
		address_release(a);
}

/* Reads an item that is one word. False: it has complained. */
static bool address_read(struct yaml *y, const yaml_node_t *item, uint16_t port, const char *rule, struct conf_address *ret_address)
{
	const char *text = yaml_text(y, item, rule);
	char why[WHY_MAX];
	int r = text ? address_parse(text, port, ret_address, why) : 0;

	if (r)
		report_add(y->report, r == VALUE_SECRET ? GRADE_SECRET : GRADE_ERROR, y->source, yaml_place(y, item), "%s", why);
	return text && !r;
}

/* Reads the name of a master or of a node. NULL: there is none, or it was refused. */
static char *word_read(struct yaml *y, const yaml_node_t *node, const char *key)
{
	char rule[128];
	const char *text;

	snprintf(rule, sizeof(rule), "%s is 1 to %d characters of A-Z a-z 0-9 . _ -, as in %s: locks", key, NODE_NAME_MAX, key);
	text = node ? yaml_text(y, node, rule) : NULL;
	if (!text)
		return NULL;
	if (*text && strlen(text) <= NODE_NAME_MAX && !text[strspn(text, WORD_LETTERS)])
		return conf_strdup(text);
	complain(y, node, "%s", rule);
	return NULL;
}

static void sentinel_addresses(struct yaml *y, const yaml_node_t *list, struct conf_sentinel *s)
{
	static const char rule[] = "the address of a sentinel is one word, host:port or host alone; an IPv6 address must be quoted: \"[::1]:26379\"";

	if (!yaml_is(y, list, YAML_SEQUENCE_NODE, "addresses is a list, as in addresses: [10.0.0.1:26379]"))
		return;
	if (list->data.sequence.items.start == list->data.sequence.items.top)
		complain(y, list, "addresses needs at least one sentinel");
	for (yaml_node_item_t *at = list->data.sequence.items.start; at < list->data.sequence.items.top; at++) {
		const yaml_node_t *item = yaml_node(y, *at);
		struct conf_address a;

		if (!address_read(y, item, SENTINEL_PORT, rule, &a))
			continue;
		if (!a.path && !a.name) {
			address_add(y, item, s->address, &s->count, CONF_SENTINELS_MAX, &a);
			continue;
		}
		complain(y, item, "%s", rule);
		address_release(&a);
	}
}

static void sentinel_read(struct yaml *y, const yaml_node_t *node, struct conf_sentinel *s)
{
	static const char *const word[] = {"master", "addresses"};
	yaml_node_t *value[2];

	if (!yaml_is(y, node, YAML_MAPPING_NODE, "sentinel is a mapping, as in " EXAMPLE))
		return;
	yaml_fields(y, node, word, 2, "sentinel has master and addresses, each once, as in " EXAMPLE, value);
	s->master = word_read(y, value[0], "master");
	if (value[1])
		sentinel_addresses(y, value[1], s);
	if (!value[0] || !value[1])
		complain(y, node, "sentinel needs %s, as in %s", value[0] ? "addresses" : "master", EXAMPLE);
}

/* The label of the node in logs and lists stays the same after a fail-over. */
static char *label_of(const struct conf_address *node)
{
	char label[NODE_NAME_MAX + 16];

	snprintf(label, sizeof(label), "sentinel:%s", node->name ? node->name : node->sentinel->master);
	return conf_strdup(label);
}

/* Reads a node whose address comes from sentinels. False: it has complained. */
static bool watched_read(struct yaml *y, const yaml_node_t *item, struct conf_address *ret_node)
{
	static const char *const word[] = {"name", "sentinel"};
	yaml_node_t *value[2];
	struct conf_address a = {.sentinel = conf_alloc(sizeof(*a.sentinel))};
	unsigned before = y->report->errors;

	yaml_fields(y, item, word, 2, "a node is one word, host:port without a blank, or has sentinel and perhaps name, as in " EXAMPLE, value);
	a.name = word_read(y, value[0], "name");
	if (value[1])
		sentinel_read(y, value[1], a.sentinel);
	else if (y->report->errors == before)
		complain(y, item, "a node is an address, or what sentinels tell, as in %s", EXAMPLE);
	if (y->report->errors != before) {
		address_release(&a);
		return false;
	}
	a.label = label_of(&a);
	*ret_node = a;
	return true;
}

size_t nodes_read(struct yaml *y, const yaml_node_t *list, struct conf_address node[CONF_NODES_MAX])
{
	static const char rule[] = "an address is one word; an IPv6 address must be quoted: \"[::1]:6379\"";
	size_t count = 0;

	if (list->data.sequence.items.start == list->data.sequence.items.top)
		complain(y, list, "redis.nodes needs at least one address");
	for (yaml_node_item_t *at = list->data.sequence.items.start; at < list->data.sequence.items.top; at++) {
		const yaml_node_t *item = yaml_node(y, *at);
		struct conf_address a;

		if (item->type == YAML_MAPPING_NODE ? watched_read(y, item, &a) : address_read(y, item, REDIS_PORT, rule, &a))
			address_add(y, item, node, &count, CONF_NODES_MAX, &a);
	}
	return count;
}
