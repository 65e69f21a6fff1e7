/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may be configured: one table (schema.def), read from YAML by libyaml's parser, every mistake located and all of them told in
 * one run (redlockd.yaml(5)). Out of memory ends the process. Not thread-safe. Memory is owned by struct conf until conf_release.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_NODES_MAX 9

enum conf_key {
#define SECTION(...)
#define KEY(id, ...) KEY_##id,
#include "conf/schema.def"
#undef KEY
#undef SECTION
	CONF_KEYS
};

struct conf_address { /* of a Redis node */
	char *label;  /* as written */
	char *path;   /* unix:/… ; else NULL */
	char *host;
	uint16_t port;
};

enum conf_store { STORE_MEMORY, STORE_REDIS };
enum conf_guard { GUARD_STRICT, GUARD_TRUST_FIRST_START };

/* Where a value comes from: a file or a --set; source NULL is the table's default. */
struct conf_source;
struct conf_origin {
	const struct conf_source *source;
	unsigned line, column; /* from 1; characters, not bytes */
	char *written;         /* numbers and durations: as written; else NULL */
	bool bad;              /* what was written was refused; the value is the one before */
};

/* Durations are microseconds, sizes bytes. Strings are NUL-terminated; NULL where the table says "none". */
struct conf {
	struct {
		char *unix_path; /* NULL: the default, under the runtime directory; "" = no */
		char *tcp_host;  /* NULL = no */
		uint16_t tcp_port;
	} listen;
	enum conf_store store;
	struct {
		struct conf_address node[CONF_NODES_MAX];
		size_t nodes;
		char *key_prefix;
		int64_t timeout;
		char *set; /* NULL: the sorted addresses */
		uint64_t generation;
		bool foreign;
		char *user; /* NULL: AUTH with the password alone */
		char *password_file; /* NULL: no AUTH; a relative name is looked up in $CREDENTIALS_DIRECTORY first, then beside the configuration file */
		uint64_t database;
		uint64_t links; /* connections per node */
	} redis;
	int64_t lease, min_lease, max_lease, max_delay, max_grace;
	enum conf_guard guard;
	char *runtime_dir; /* NULL: chosen at start */
	struct {
		uint64_t line, clients, detached, locks, waiting, output, name, mistakes;
	} limits;
	struct {
		int level; /* 0 error .. 4 debug */
	} log;
	struct conf_origin origin[CONF_KEYS];
	struct conf_source *sources;
};

/*
 * What was wrong. Messages are collected while *errors and *warnings count them; conf_report_print writes them in the order of the
 * sources and of their lines, and forgets them: file:line:column: error: … , the source line, a caret.
 */
struct conf_message;
struct conf_report {
	FILE *out; /* NULL: count only */
	unsigned errors, warnings;
	struct conf_message *first;
};

void conf_report_print(struct conf_report *report);

void conf_init(struct conf *ret_conf); /* the defaults of the table */
void conf_release(struct conf *c);

/*
 * The whole way: defaults, the file (NULL: none), each --set, the checks, the messages printed. 0, or -1 when there were errors; *ret_conf
 * must be released either way.
 */
int conf_read(struct conf *ret_conf, const char *path, const char *const *sets, size_t count, struct conf_report *report)
	__attribute__((warn_unused_result));

/* The steps of it. Reading goes over what *c holds; -1 when it added errors (c is then unusable but releasable). None of them prints. */
int conf_load(struct conf *c, const char *path, struct conf_report *report);
int conf_load_text(struct conf *c, const char *label, const char *text, size_t n, struct conf_report *report);
/* One --set path=value: "redis.timeout=80ms", "redis.nodes=[127.0.0.1:6379, 127.0.0.1:6380]". */
int conf_set(struct conf *c, const char *assignment, struct conf_report *report);
/* What no single key shows: lease <= max_lease, nodes when the store is redis … After all loads and sets; leaves out what was refused before. */
int conf_check(struct conf *c, struct conf_report *report);

/* Effective YAML with the origin of each value as a trailing comment; parseable again to the same configuration. Secrets are files, none is printed. */
void conf_dump(const struct conf *c, FILE *out);
/* One line: "ok: store redis, 3 nodes, quorum 2, 2 listeners". */
void conf_summary(const struct conf *c, FILE *out);
/* Every key with its default and its first sentence of help, one a line: for --help. */
void conf_keys(FILE *out);

/*
 * What a reload changes: one call per key that differs in value, with both values as the file would say them, and whether it takes effect
 * at once or needs a restart. Returns how many need a restart. say may be NULL.
 */
typedef void conf_diff_fn(void *context, const char *path, const char *from, const char *to, bool reloadable);
unsigned conf_diff(const struct conf *from, const struct conf *to, conf_diff_fn *say, void *context);

/*
 * The values of keys that take effect at a reload change hands, with their origins; all others stay. A lease beyond the max_lease that is
 * in effect waits for the restart, too. *fresh is good for conf_release only.
 */
void conf_take_live(struct conf *c, struct conf *fresh);

/*
 * The password that redis.password_file names, without its line end; *ret_password is the caller's to free, NULL when none is configured.
 * 0, -EINVAL for an empty, binary or overlong one, or the errno of reading it.
 */
int conf_password(const struct conf *c, char **ret_password) __attribute__((warn_unused_result));

/*
 * A daemon that serves must not wait for a pipe, which has been read already or whose writer comes when he likes: false for what is there and no
 * regular file; and the same as conf_password, but -ENOTSUP for such a one.
 */
bool conf_may_be_read_again(const char *path);
/* Whether a reload may use the password of *fresh, before its values are taken: that of another redis.user waits for the restart with it. */
bool conf_password_is_live(const struct conf *now, const struct conf *fresh);
int conf_password_again(const struct conf *c, char **ret_password) __attribute__((warn_unused_result));

#endif
