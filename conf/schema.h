/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of schema.def as data, and lookups in them. Constant; internal to conf.
 */
#ifndef CONF_SCHEMA_H
#define CONF_SCHEMA_H

#include "conf/conf.h"

/* The first five are numbers, and are compared as numbers. Their fields, and those that are pointers, can be swapped. */
enum setting_type {
	TYPE_BOOL,     /* bool */
	TYPE_CHOICE,   /* an enum, as wide as int */
	TYPE_COUNT,    /* uint64_t */
	TYPE_SIZE,     /* uint64_t, bytes */
	TYPE_DURATION, /* int64_t, microseconds */
	TYPE_TEXT,     /* char * */
	TYPE_FILENAME, /* char * */
	TYPE_FOLDER,   /* char *, absolute */
	TYPE_SOCKET,   /* char *, "" = no */
	TYPE_HOSTS,    /* char *, host names, separated by blanks */
	TYPE_GROUPS,   /* char *, see internal.h */
	TYPE_RULES,    /* struct conf_rules *, NULL = none */
	TYPE_LISTENER, /* struct conf.listen.tcp_host and tcp_port, NULL = no */
	TYPE_WEB,      /* struct conf_address; label NULL = no */
	TYPE_NODES,    /* struct conf.redis.node and nodes */
};

struct setting {
	enum conf_key key;
	const char *path;
	enum setting_type type;
	size_t offset;     /* in struct conf */
	const char *given; /* the default as a file would contain it; NULL: `unset` says what happens without a value */
	const char *unset;
	const char *example; /* an example value of a key without a default */
	const char *low, *high;
	const char *words; /* CHOICE: "a|b|c" */
	bool live;
	const char *help;
};

struct section {
	const char *name;
	const char *help;
};

extern const struct setting setting_table[CONF_KEYS];
extern const struct section section_table[];
extern const size_t section_count;

/* The path without its section. */
const char *setting_leaf(const struct setting *s);
/* The section with which the path begins, or NULL. */
const struct section *setting_section(const struct setting *s);
/* "a duration from 1ms to 10s": the permitted values, for messages, the manual and the example. */
#define RANGE_MAX 200
const char *setting_range(const struct setting *s, char out[RANGE_MAX]);

const struct section *section_find(const char *name);
const struct setting *setting_find(const char *path);

#define HINT_MAX 128
/* " (did you mean 'listen.tcp'?)" for a path that is neither a key nor a section, else "". */
const char *setting_hint(const char *path, char out[HINT_MAX]);

#endif
