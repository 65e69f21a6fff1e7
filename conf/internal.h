/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the files of conf share: addresses, values, lists. Internal to conf.
 */
#ifndef CONF_INTERNAL_H
#define CONF_INTERNAL_H

#include "conf/schema.h"
#include "conf/words.h"
#include "conf/yaml.h"

#define WHY_MAX         512
#define SOCKET_PATH_MAX 107 /* bytes of a Unix socket's path */
#define NODE_NAME_MAX   64  /* bytes of the name of a node */

/* The outcome of a value. VALUE_BAD comes with a reason, for people. */
#define VALUE_BAD    (-1)
#define VALUE_SECRET (-2) /* the same, and the line may contain a password */

/* --- address.c: the text of addresses; it resolves nothing --- */

/* Formats the reason; returns VALUE_BAD. */
int value_refuse(char why[WHY_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Parses host:port, [v6]:port, unix:/path, or host without a port, which gets this one. Each may begin with NAME=. On success *ret_address owns its strings. */
int address_parse(const char *text, uint16_t port, struct conf_address *ret_address, char why[WHY_MAX]);
void address_release(struct conf_address *a);
bool address_equal(const struct conf_address *a, const struct conf_address *b);
/* The name of the node for daemons. */
static inline const char *address_name(const struct conf_address *a)
{
	return a->name ? a->name : a->label;
}
/* Parses host:port or [v6]:port; port 0 is allowed. usual is the default, for the hints. The caller frees *ret_host. */
int listener_parse(const char *text, const char *usual, char **ret_host, uint16_t *ret_port, char why[WHY_MAX]);
/* The same, or unix:/path. On success *ret_address owns its strings. */
int web_address_parse(const char *text, struct conf_address *ret_address, char why[WHY_MAX]);
bool host_is_name(const char *host);

/* --- value.c: the value of one key --- */

/* Sets the field of s from text. 0; or VALUE_BAD or VALUE_SECRET with a reason, and the field stays. Not for lists and mappings. */
int conf_value_parse(struct conf *c, const struct setting *s, const char *text, char why[WHY_MAX]);
/* Sets the field and the origin of s from a node of YAML. It reports a mistake; then the field stays, and the key is bad. */
void conf_value_read(struct conf *c, const struct setting *s, struct yaml *y, const yaml_node_t *node);
/* Sets where the value of a key comes from, and takes ownership of the value as YAML. */
void origin_set(struct conf *c, enum conf_key key, const struct conf_source *source, struct source_place place, char *written);
void conf_value_release(struct conf *c, const struct setting *s);
bool conf_value_equal(const struct conf *a, const struct conf *b, const struct setting *s);
void conf_value_swap(struct conf *a, struct conf *b, const struct setting *s); /* for a LIVE key, with its origin */

/* --- nodes.c, rules.c: lists and mappings --- */

/*
 * Reads the addresses of redis.nodes, and the sentinels of a node: {sentinel: {master: locks, addresses: [10.0.0.1:26379]}}, with or without name:
 * beside it. Returns how many nodes there are, and reports mistakes.
 */
size_t nodes_read(struct yaml *y, const yaml_node_t *list, struct conf_address node[CONF_NODES_MAX]);
/*
 * Reads the list of rules. NULL: there is none, or it has reported a mistake. It turns names of users and groups into numbers, with the tables of the
 * system, which may block.
 */
struct conf_rules *rules_read(struct yaml *y, const yaml_node_t *list);
void rules_free(struct conf_rules *rules); /* NULL is allowed */
/* Finds the number of a group by its name or number. False: this host has no such group. */
bool rules_group(const char *text, int64_t *ret_number);
/* Reads metrics.groups as one text: a line "label TAB pattern" for each group. The caller frees it. It reports mistakes. */
char *groups_read(struct yaml *y, const yaml_node_t *mapping);

/* --- file.c --- */

/* Reads the secrets that the configuration names, and reports mistakes. */
void secrets_check(const struct conf *c, struct conf_report *report);
/* Checks the modes of files that the configuration names, and of its own file unless path is NULL. It never opens a file. */
void modes_check(const struct conf *c, const char *path, struct conf_report *report);

#endif
