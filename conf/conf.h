/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration (redlockd.yaml(5)): one table of keys (schema.def), read from YAML with libyaml. One run reports all mistakes, each with its
 * place. If memory is exhausted, the process ends. Not thread-safe. struct conf owns its memory until conf_release.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_NODES_MAX     9
#define CONF_SENTINELS_MAX 9

enum conf_key {
#define SECTION(...)
#define KEY(id, ...) KEY_##id,
#include "conf/schema.def"
#undef KEY
#undef SECTION
	CONF_KEYS
};

struct conf_address { /* for a Redis node, or a web listener */
	char *label;  /* as written, without a name */
	char *name;   /* NAME=…; NULL: the label is the name */
	char *path;   /* unix:/… ; else NULL */
	char *host;
	uint16_t port;
	struct conf_sentinel *sentinel; /* sentinels report where the node is; then there is no path and no host. NULL: none */
};

struct conf_sentinel {
	char *master; /* the name that sentinels use for the master */
	size_t count;
	struct conf_address address[CONF_SENTINELS_MAX];
};

enum conf_store { STORE_MEMORY, STORE_REDIS };
enum conf_guard { GUARD_STRICT, GUARD_TRUST_FIRST_START };
enum conf_unix_mode { UNIX_MODE_OWNER, UNIX_MODE_GROUP, UNIX_MODE_ALL };
enum conf_home_lost { HOME_LOST_CLOSED, HOME_LOST_OPEN, HOME_LOST_NEXT };

/* Rights that a rule gives. */
enum { CONF_LOCK = 1, CONF_LOOK = 2, CONF_ADMIN = 4 };

/* One rule: it decides about a request if all its conditions hold. */
struct conf_rule {
	unsigned line;           /* its line in the file */
	char *uid, *group;       /* conditions, as written; NULL: none */
	int64_t uid_n, group_n;  /* the numbers of the two */
	char *user, *cert;       /* likewise: the user of an AUTH, the subject of a client certificate */
	char *names;             /* a pattern, in which * stands for any bytes; NULL: all requests */
	unsigned allow;          /* bits */
};

struct conf_rules {
	size_t count;
	struct conf_rule rule[];
};

/* Where a value comes from: a file or a --set. source NULL: the default of the table. */
struct conf_source;
struct conf_origin {
	const struct conf_source *source;
	unsigned line, column; /* from 1; characters, not bytes */
	char *written;         /* the value as one line of YAML; NULL: none */
	bool bad;              /* the value in the file was refused; the earlier value stays */
};

/* Durations are microseconds, sizes bytes. Strings are NUL-terminated; NULL where the table says "none". */
struct conf {
	struct {
		char *unix_path; /* NULL: the default, under the runtime directory; "" = no */
		enum conf_unix_mode unix_mode;
		char *unix_group; /* NULL: the group of the process */
		int64_t unix_gid; /* its number */
		char *tcp_host;  /* NULL = no */
		uint16_t tcp_port;
		char *tls_host;  /* NULL = no */
		uint16_t tls_port;
		struct conf_address http, api; /* label NULL = no */
	} listen;
	struct {
		char *cert_file, *key_file, *client_ca_file; /* NULL: none */
	} tls;
	struct {
		char *hosts;      /* further names of listen.http and listen.api, separated by blanks; NULL: none */
		char *token_file; /* NULL: no token */
		char *metrics_token_file; /* likewise; that token is valid for /metrics only */
	} http;
	struct {
		char *token_file; /* NULL: no token */
		bool tls;
	} api;
	enum conf_store store;
	struct {
		struct conf_address node[CONF_NODES_MAX];
		size_t nodes;
		char *key_prefix;
		int64_t timeout;
		char *set; /* NULL: the sorted addresses */
		uint64_t generation;
		bool foreign;
		char *user; /* NULL: AUTH with the password only */
		char *sentinel_user, *sentinel_password_file; /* the same for sentinels */
		char *password_file; /* NULL: no AUTH */
		struct {
			bool on;
			char *ca_file; /* NULL: the authorities of the system */
			char *cert_file, *key_file, *server_name; /* NULL: none */
		} tls;
		uint64_t database;
		uint64_t links; /* connections per node */
	} redis;
	int64_t lease, min_lease, max_lease, max_delay, max_keep, max_grace;
	struct {
		enum conf_home_lost home_lost;
	} rate;
	struct {
		uint64_t attempts;
		int64_t keep;
	} jobs;
	struct {
		int64_t held, waited; /* 0: never */
		uint64_t failures;    /* per cent; 0: never */
	} alarm;
	struct {
		int64_t wait, hold, store; /* 0: never */
	} slow;
	struct {
		char *groups; /* one line for each group: label, tab and pattern; NULL: none */
	} metrics;
	enum conf_guard guard;
	char *runtime_dir; /* NULL: chosen at start */
	char *state_dir;   /* NULL: likewise */
	struct {
		char *users_file; /* NULL: no users */
	} auth;
	struct conf_rules *rules; /* NULL: none */
	struct {
		char *file; /* NULL: no audit log */
	} audit;
	bool insecure;
	struct {
		uint64_t line, clients, peer, detached, locks, waiting, jobs, stored, renewals, output, name, mistakes;
	} limits;
	struct {
		int level; /* 0 error .. 4 debug */
	} log;
	struct conf_origin origin[CONF_KEYS];
	struct conf_source *sources;
};

/*
 * Collected messages, and how many there are of each kind. conf_report_print writes them in the order of sources and lines, and frees them. Each is
 * "file:line:column: error: …", the source line, and a caret.
 */
struct conf_message;
struct conf_report {
	FILE *out; /* NULL: count only */
	unsigned errors, warnings;
	bool files; /* conf_read also opens and checks the files that the configuration names */
	int (*more)(const struct conf *c, struct conf_report *report); /* conf_read also makes these checks. NULL: none */
	struct conf_message *first;
};

void conf_report_print(struct conf_report *report);

void conf_init(struct conf *ret_conf); /* the defaults of the table */
void conf_release(struct conf *c);

/*
 * Does all steps: defaults, the file (path NULL: none), each --set, the checks, printing the messages. 0, or -1 if there were errors. The caller must
 * release *ret_conf in both cases.
 */
int conf_read(struct conf *ret_conf, const char *path, const char *const *sets, size_t count, struct conf_report *report)
	__attribute__((warn_unused_result));

/* The single steps. They do not print. Each overrides values of *c. 0, or -1 if it added errors: then c can only be released. */
int conf_load(struct conf *c, const char *path, struct conf_report *report);
int conf_load_text(struct conf *c, const char *label, const char *text, size_t n, struct conf_report *report);
/* One --set path=value: "redis.timeout=80ms", "redis.nodes=[127.0.0.1:6379, 127.0.0.1:6380]". */
int conf_set(struct conf *c, const char *assignment, struct conf_report *report);
/* Makes the checks that concern several keys, like lease <= max_lease. Call it after all loads and sets. It skips keys that were refused before. */
int conf_check(struct conf *c, struct conf_report *report);

/* Whether only this host reaches the address, because it is a loopback address or "localhost". Another name may resolve to any address, so it is not local. */
bool conf_host_is_local(const char *host);
/* Whether something protects an address for plain TCP: clients must authenticate, or there are rules, or the file explicitly says that it is insecure. */
bool conf_is_protected(const struct conf *c);

/* The users of auth.users_file. */
struct conf_user {
	char *name, *hash;
};

struct conf_users {
	size_t count;
	struct conf_user user[];
};

/* Reads auth.users_file, which must be set. NULL: it added errors to the report. Print the report while the configuration exists. */
struct conf_users *conf_users(struct conf *c, struct conf_report *report);
void conf_users_free(struct conf_users *users); /* NULL is allowed */
/* Prints the effective YAML, with the origin of each value as a comment. Reading it gives the same configuration. It contains no secret. */
void conf_dump(const struct conf *c, FILE *out);
/* One line: "ok: store redis, 3 nodes, quorum 2, 2 listeners". */
void conf_summary(const struct conf *c, FILE *out);
/* One line per key, with its default and the first sentence of its help, for --help. */
void conf_keys(FILE *out);

/*
 * Compares two configurations. Calls differs once per key whose value differs, with both values as a file would contain them, and whether a reload puts
 * it into effect. Returns how many keys need a restart. differs may be NULL.
 */
typedef void conf_diff_fn(void *context, const char *path, const char *from, const char *to, bool reloadable);
unsigned conf_diff(const struct conf *from, const struct conf *to, conf_diff_fn *differs, void *context);

/*
 * Moves the values of all keys that take effect at a reload from *fresh to *c, with their origins. A lease longer than the max_lease in effect also
 * waits for the restart. Afterwards *fresh can only be released.
 */
void conf_take_live(struct conf *c, struct conf *fresh);

/*
 * Reads the secret in the file that this key names: one line, without its end. The caller frees it. NULL if the key has no value. It must be a
 * regular file, so that reading never blocks. 0; -EINVAL if the file is empty, binary or too long; -ENOTSUP; or another negative errno of reading it.
 */
int conf_secret(const struct conf *c, enum conf_key key, char **ret_secret) __attribute__((warn_unused_result));

/* Whether a running daemon may read the configuration again without blocking on a pipe. False if the file exists and is not regular. */
bool conf_may_be_read_again(const char *path);
/* Whether a reload may use the password of *fresh; call it before conf_take_live. If redis.user differs, both wait for the restart. */
bool conf_password_is_live(const struct conf *now, const struct conf *fresh);

/*
 * Reads the file that this key names, as text of *ret_n bytes and a NUL. The caller frees it; NULL if the key has no value. It must be a regular file
 * of at most 1 MiB, so that reading never blocks. 0; -ENOTSUP, -EFBIG; or another negative errno of reading it.
 */
int conf_file(const struct conf *c, enum conf_key key, char **ret_text, size_t *ret_n) __attribute__((warn_unused_result));
/* The name of that file in the configuration; NULL: none. */
const char *conf_file_name(const struct conf *c, enum conf_key key);
/*
 * Finds the file that this key names; the key must have a value. A relative name is looked up in $CREDENTIALS_DIRECTORY, then beside the
 * configuration file, then in the working directory. ret_path has PATH_MAX bytes. False, and errno is set: the path is too long.
 */
bool conf_file_path(const struct conf *c, enum conf_key key, char *ret_path);
/* Adds an error, or a warning, at the place of this key. */
void conf_refuse(const struct conf *c, enum conf_key key, struct conf_report *report, const char *format, ...) __attribute__((format(printf, 4, 5)));
void conf_warn(const struct conf *c, enum conf_key key, struct conf_report *report, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
