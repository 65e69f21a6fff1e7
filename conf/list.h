/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of addresses, or of words, that is being read. Internal to conf.
 */
#ifndef CONF_LIST_H
#define CONF_LIST_H

#include "conf/address.h"
#include "conf/yaml.h"

struct list {
	struct conf_address node[CONF_NODES_MAX]; /* the valid ones */
	size_t count;
	bool bad;
};

/* Reads the items up to the end of the list, which has begun. */
void list_items(struct yaml *y, struct list *list);
/* Joins the words of a list that has begun, a blank between two. NULL: complained. path, example: of the setting. The caller frees it. */
char *list_words(struct yaml *y, const char *path, const char *example);

#endif
