/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the items of a list. After a mistake reading goes on, so one run reports all mistakes. */
#include "conf/list.h"

#include "conf/sentinel.h"
#include "conf/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define complain(y, place, ...) report_error((y)->report, (y)->source, (place), __VA_ARGS__)

static void item_add(struct yaml *y, struct list *list, struct conf_address *a, struct source_place place)
{
	for (size_t i = 0; i < list->count; i++) {
		if (address_equal(&list->node[i], a)) {
			complain(y, place, "'%s' stands in the list twice", a->label);
			list->bad = true;
			address_release(a);
			return;
		}
		if (!strcmp(address_name(&list->node[i]), address_name(a))) {
			complain(y, place, "two nodes are called '%s'%s", address_name(a), a->sentinel ? ": put name: beside sentinel:, as in name: red1" : "");
			list->bad = true;
			address_release(a);
			return;
		}
	}
	if (list->count == CONF_NODES_MAX) {
		complain(y, place, "at most %d nodes", CONF_NODES_MAX);
		list->bad = true;
		address_release(a);
		return;
	}
	list->node[list->count++] = *a;
}

static void sentinel_item(struct yaml *y, struct list *list)
{
	struct source_place place = yaml_place(y);
	struct conf_address a;

	if (!sentinel_read(y, &a))
		item_add(y, list, &a, place);
	else
		list->bad = true;
}

static void item_read(struct yaml *y, struct list *list)
{
	const yaml_event_t *e = &y->event;
	const char *text = (const char *)e->data.scalar.value;
	struct conf_address a;
	char why[WHY_MAX];
	int outcome;

	list->bad = list->bad || yaml_is_continued(y);
	if (yaml_is_continued(y)) /* reported already */
		return;
	if (!text_printable(text, e->data.scalar.length)) {
		complain(y, yaml_place(y), "an address holds no control characters");
		list->bad = true;
		return;
	}
	outcome = address_parse(text, &a, why);
	if (!outcome) {
		item_add(y, list, &a, yaml_place(y));
		return;
	}
	list_complain(y, outcome, why);
	list->bad = true;
}

void list_items(struct yaml *y, struct list *list)
{
	while (yaml_next(y) != YAML_SEQUENCE_END_EVENT && !y->over) {
		if (y->event.type == YAML_SCALAR_EVENT) {
			item_read(y, list);
			continue;
		}
		if (y->event.type == YAML_MAPPING_START_EVENT) {
			sentinel_item(y, list);
			continue;
		}
		if (y->event.type == YAML_SEQUENCE_START_EVENT)
			complain(y, yaml_place(y),
				 "a list within the list; an IPv6 address must be quoted: \"[::1]:6379\"");
		list->bad = true;
		yaml_skip(y);
	}
}

char *list_words(struct yaml *y, const char *path, const char *example)
{
	size_t n = 0;
	char *text = conf_strdup("");
	bool bad = false;

	while (yaml_next(y) != YAML_SEQUENCE_END_EVENT && !y->over) {
		const yaml_event_t *e = &y->event;
		const char *word = e->type == YAML_SCALAR_EVENT ? (const char *)e->data.scalar.value : "";
		size_t length = strlen(word);
		char *longer;

		if (!length || length != e->data.scalar.length || strpbrk(word, " \t\r\n") || !text_printable(word, length)) {
			complain(y, yaml_place(y), "%s is a list of words, as in %s", path, example);
			yaml_skip(y);
			bad = true;
			continue;
		}
		longer = conf_alloc(n + length + 2);
		n = (size_t)sprintf(longer, "%s%s%s", text, *text ? " " : "", word);
		free(text);
		text = longer;
	}
	if (!bad && !y->over)
		return text;
	free(text);
	return NULL;
}
