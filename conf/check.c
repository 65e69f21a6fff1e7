/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that concern several keys. They skip a key that was refused before: its mistake was reported, and its value is not the intended one.
 */
#include "conf/internal.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESERVED          "redlockd:"
#define SOCKET_NAME       "/redlockd.sock"
#define SENTINEL_LEAST_US (10 * INT64_C(1000000))

/* The source of a message if neither key of a conflict was written. The defaults agree with each other, so this does not happen. */
static const struct conf_source nowhere = {.label = (char[]){"redlockd"}};

static void __attribute__((format(printf, 5, 0)))
key_report(const struct conf *c, enum conf_key key, struct conf_report *report, enum grade grade, const char *format, va_list values)
{
	const struct conf_origin *o = &c->origin[key];
	char text[2 * PATH_MAX + WHY_MAX];

	vsnprintf(text, sizeof(text), format, values);
	report_add(report, grade, o->source ? o->source : &nowhere, (struct source_place){o->line, o->column}, "%s", text);
}

void conf_refuse(const struct conf *c, enum conf_key key, struct conf_report *report, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	key_report(c, key, report, GRADE_ERROR, format, values);
	va_end(values);
}

void conf_warn(const struct conf *c, enum conf_key key, struct conf_report *report, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	key_report(c, key, report, GRADE_WARNING, format, values);
	va_end(values);
}

static bool given(const struct conf *c, enum conf_key key)
{
	return c->origin[key].source != NULL;
}

static bool good(const struct conf *c, enum conf_key key)
{
	return !c->origin[key].bad;
}

/* Returns the key to blame: a if the file has it, else b. */
static enum conf_key blamed(const struct conf *c, enum conf_key a, enum conf_key b)
{
	return given(c, a) ? a : b;
}

static const char *written(const struct conf *c, enum conf_key key)
{
	return c->origin[key].written;
}

static const char *by_default(const struct conf *c, enum conf_key key)
{
	return given(c, key) ? "" : ", the default";
}

static void listeners_check(const struct conf *c, struct conf_report *report)
{
	bool all = good(c, KEY_LISTEN_UNIX) && good(c, KEY_LISTEN_TCP) && good(c, KEY_LISTEN_TLS);

	if (all && !c->listen.tcp_host && !c->listen.tls_host && c->listen.unix_path && !*c->listen.unix_path)
		conf_refuse(c, KEY_LISTEN_TCP, report, "nobody could connect: listen.unix and listen.tcp are both switched off");
}

static void unix_check(struct conf *c, struct conf_report *report)
{
	const char *group = c->listen.unix_group;

	if (group && good(c, KEY_LISTEN_UNIX_GROUP) && !rules_group(group, &c->listen.unix_gid))
		conf_refuse(c, KEY_LISTEN_UNIX_GROUP, report, "this host has no group '%.200s'", group);
}

/* Refuses key if `other` has no value. */
static void need_check(const struct conf *c, enum conf_key key, enum conf_key other, struct conf_report *report)
{
	const struct setting *needed = &setting_table[other];

	if (good(c, key) && good(c, other) && !written(c, other))
		conf_refuse(c, key, report, "%s needs %s, as in %s: %s", setting_table[key].path, needed->path, setting_leaf(needed), needed->example);
}

static void needs_check(const struct conf *c, struct conf_report *report)
{
	static const enum conf_key needs[][2] = {
		{KEY_REDIS_TLS_CERT_FILE, KEY_REDIS_TLS_KEY_FILE},
		{KEY_REDIS_TLS_KEY_FILE, KEY_REDIS_TLS_CERT_FILE},
		{KEY_REDIS_USER, KEY_REDIS_PASSWORD_FILE},
		{KEY_REDIS_SENTINEL_USER, KEY_REDIS_SENTINEL_PASSWORD_FILE},
	};

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (written(c, needs[i][0]))
			need_check(c, needs[i][0], needs[i][1], report);
}

static void tls_check(const struct conf *c, struct conf_report *report)
{
	enum conf_key by = c->listen.tls_host ? KEY_LISTEN_TLS : KEY_API_TLS;

	if (c->listen.tls_host || c->api.tls)
		need_check(c, by, c->tls.cert_file ? KEY_TLS_KEY_FILE : KEY_TLS_CERT_FILE, report);
	for (int key = KEY_TLS_CERT_FILE; key <= KEY_TLS_CLIENT_CA_FILE; key++)
		if (!given(c, KEY_LISTEN_TLS) && !c->api.tls && given(c, (enum conf_key)key) && good(c, KEY_LISTEN_TLS))
			conf_warn(c, (enum conf_key)key, report,
				   "this file is not used: listen.tls is no, the default (did you mean to add 'tls: 0.0.0.0:7422' under 'listen'?)");
}

static void redis_tls_check(const struct conf *c, struct conf_report *report)
{
	bool on = c->redis.tls.on || !good(c, KEY_REDIS_TLS);

	for (int key = KEY_REDIS_TLS_CA_FILE; key <= KEY_REDIS_TLS_SERVER_NAME; key++)
		if (!on && given(c, (enum conf_key)key))
			conf_refuse(c, (enum conf_key)key, report, "%s is set, but redis.tls is no%s (did you mean to set redis.tls to yes?)",
				 setting_table[key].path, by_default(c, KEY_REDIS_TLS));
}

/* Refuses a value of a that is longer than that of b. */
static void order_check(const struct conf *c, enum conf_key a, int64_t value_a, enum conf_key b, int64_t value_b,
			struct conf_report *report)
{
	if (good(c, a) && good(c, b) && value_a > value_b)
		conf_refuse(c, blamed(c, a, b), report, "%s (%s%s) is longer than %s (%s%s)", setting_table[a].path, written(c, a),
			 by_default(c, a), setting_table[b].path, written(c, b), by_default(c, b));
}

static void leases_check(const struct conf *c, struct conf_report *report)
{
	order_check(c, KEY_LEASE, c->lease, KEY_MAX_LEASE, c->max_lease, report);
	order_check(c, KEY_MIN_LEASE, c->min_lease, KEY_LEASE, c->lease, report);
}

static void timeout_check(const struct conf *c, struct conf_report *report)
{
	if (good(c, KEY_LEASE) && good(c, KEY_REDIS_TIMEOUT) && c->lease < 4 * c->redis.timeout)
		conf_warn(c, blamed(c, KEY_REDIS_TIMEOUT, KEY_LEASE), report,
			   "the lease (%s%s) is shorter than four times redis.timeout (%s%s): one slow node may cost it",
			   written(c, KEY_LEASE), by_default(c, KEY_LEASE), written(c, KEY_REDIS_TIMEOUT),
			   by_default(c, KEY_REDIS_TIMEOUT));
}

static void quorum_check(const struct conf *c, struct conf_report *report)
{
	size_t n = c->redis.nodes;

	if (!n && good(c, KEY_REDIS_NODES))
		conf_refuse(c, KEY_STORE, report, "store: redis needs redis.nodes, as in nodes: [127.0.0.1:6379]");
	if (n && n % 2 == 0)
		conf_warn(c, KEY_REDIS_NODES, report,
			   "%zu nodes survive the failure of %zu, as %zu would: an odd number is best", n, n / 2 - 1, n - 1);
}

/* Daemons learn of a fail-over one after the other. The first one waits for max_lease and max_delay, so that the others can leave the former master. */
static void sentinel_check(const struct conf *c, struct conf_report *report)
{
	bool watched = false;

	for (size_t i = 0; i < c->redis.nodes; i++)
		watched |= c->redis.node[i].sentinel != NULL;
	if (watched && good(c, KEY_REDIS_NODES) && good(c, KEY_MAX_LEASE) && c->max_lease + c->max_delay < SENTINEL_LEAST_US)
		conf_warn(c, blamed(c, KEY_MAX_LEASE, KEY_REDIS_NODES), report,
		           "max_lease (%s%s) is short where sentinels tell the address: daemons may hear of a fail-over that far apart; 10s or more is safe",
		           written(c, KEY_MAX_LEASE), by_default(c, KEY_MAX_LEASE));
}

static void store_check(const struct conf *c, struct conf_report *report)
{
	if (!good(c, KEY_STORE))
		return;
	if (c->store == STORE_REDIS) {
		quorum_check(c, report);
		timeout_check(c, report);
		sentinel_check(c, report);
	} else if (c->redis.nodes && !given(c, KEY_STORE)) {
		conf_warn(c, KEY_REDIS_NODES, report,
			   "these nodes are not used: the store is memory, the default (did you mean to add 'store: redis'?)");
	}
}

/*
 * Keys of the daemon itself begin with "redlockd:" + prefix, keys of locks with prefix. If one of these were the beginning of the other, a client
 * could choose a name that overwrites the marker.
 */
static void prefix_check(const struct conf *c, struct conf_report *report)
{
	const char *prefix = c->redis.key_prefix;
	size_t n = strlen(prefix), reserved = strlen(RESERVED);

	if (!strncmp(prefix, RESERVED, n < reserved ? n : reserved))
		conf_refuse(c, KEY_REDIS_KEY_PREFIX, report,
			 "with this prefix a lock could hit redlockd's own keys, which begin with '%s'", RESERVED);
}

static bool is_open(const struct conf_address *a)
{
	return a->host && !conf_host_is_local(a->host);
}

static void web_check(const struct conf *c, struct conf_report *report)
{
	if (!c->listen.http.label || !good(c, KEY_LISTEN_HTTP))
		return;
	if (good(c, KEY_HTTP_TOKEN_FILE) && !c->http.token_file && is_open(&c->listen.http))
		conf_refuse(c, KEY_LISTEN_HTTP, report, "other hosts may reach %s: set http.token_file, or listen on 127.0.0.1", c->listen.http.label);
	if (c->http.metrics_token_file && !c->http.token_file && !c->rules && good(c, KEY_HTTP_TOKEN_FILE) && good(c, KEY_RULES))
		conf_warn(c, KEY_HTTP_METRICS_TOKEN_FILE, report,
		          "this token alone protects nothing: whoever reaches listen.http reads /metrics without it; set http.token_file or rules, too");
}

/* Everybody who reaches this address could lock. So it always needs a token or a certificate, and a token never crosses a network unencrypted. */
static void api_check(const struct conf *c, struct conf_report *report)
{
	bool shown = c->api.tls && (c->tls.client_ca_file || !good(c, KEY_TLS_CLIENT_CA_FILE));

	if (!c->listen.api.label || !good(c, KEY_LISTEN_API) || !good(c, KEY_API_TOKEN_FILE) || !good(c, KEY_API_TLS))
		return;
	if (!c->api.token_file && !shown)
		conf_refuse(c, KEY_LISTEN_API, report,
		         "listen.api needs api.token_file, or api.tls: yes with tls.client_ca_file: whoever reaches it could take and release locks");
	if (is_open(&c->listen.api) && !c->api.tls && !c->insecure && good(c, KEY_INSECURE))
		conf_refuse(c, KEY_LISTEN_API, report,
		         "the token would cross the network in the clear: set api.tls to yes, listen on 127.0.0.1, or say 'insecure: yes'");
}

static void folder_check(const struct conf *c, struct conf_report *report)
{
	if (c->runtime_dir && !c->listen.unix_path && good(c, KEY_LISTEN_UNIX) &&
	    strlen(c->runtime_dir) + strlen(SOCKET_NAME) > SOCKET_PATH_MAX)
		conf_refuse(c, KEY_RUNTIME_DIR, report,
			 "too long for the path of a socket in it (%d bytes); set listen.unix, or use a shorter one",
			 SOCKET_PATH_MAX);
}

/* Besides the name, a line has LOCK, a blank and the line end. A name that must be quoted needs more. */
static void line_check(const struct conf *c, struct conf_report *report)
{
	if (good(c, KEY_LIMITS_LINE) && good(c, KEY_LIMITS_NAME) && c->limits.line < c->limits.name + 16)
		conf_warn(c, blamed(c, KEY_LIMITS_LINE, KEY_LIMITS_NAME), report,
			   "a name of limits.name bytes (%s%s) does not fit into a line of limits.line (%s%s)",
			   written(c, KEY_LIMITS_NAME), by_default(c, KEY_LIMITS_NAME), written(c, KEY_LIMITS_LINE),
			   by_default(c, KEY_LIMITS_LINE));
}

bool conf_is_protected(const struct conf *c)
{
	return c->auth.users_file || c->rules || c->insecure;
}

/* Refuses an address beyond loopback that nothing protects. */
static void protection_check(const struct conf *c, enum conf_key key, const char *host, const char *what, struct conf_report *report)
{
	bool known = good(c, KEY_AUTH_USERS_FILE) && good(c, KEY_RULES) && good(c, KEY_INSECURE);

	if (host && known && good(c, key) && !conf_host_is_local(host) && !conf_is_protected(c))
		conf_refuse(c, key, report,
		            "everybody who reaches this address could take and release locks; set %s, use 127.0.0.1, or say 'insecure: yes'", what);
}

/* Warns of a rule for a user when there are no users. */
static void rules_check(const struct conf *c, struct conf_report *report)
{
	if (!c->rules || !good(c, KEY_RULES) || c->auth.users_file || !good(c, KEY_AUTH_USERS_FILE))
		return;
	for (size_t i = 0; i < c->rules->count; i++)
		if (c->rules->rule[i].user)
			report_add(report, GRADE_WARNING, c->origin[KEY_RULES].source, (struct source_place){c->rules->rule[i].line, 1},
			           "nobody is user '%s', as there are no users: set auth.users_file", c->rules->rule[i].user);
}

int conf_check(struct conf *c, struct conf_report *report)
{
	unsigned before = report->errors;

	listeners_check(c, report);
	unix_check(c, report);
	needs_check(c, report);
	tls_check(c, report);
	redis_tls_check(c, report);
	leases_check(c, report);
	store_check(c, report);
	prefix_check(c, report);
	folder_check(c, report);
	web_check(c, report);
	api_check(c, report);
	line_check(c, report);
	protection_check(c, KEY_LISTEN_TCP, c->listen.tcp_host, "auth.users_file or rules", report);
	if (!c->tls.client_ca_file && good(c, KEY_TLS_CLIENT_CA_FILE))
		protection_check(c, KEY_LISTEN_TLS, c->listen.tls_host, "tls.client_ca_file, auth.users_file or rules", report);
	rules_check(c, report);
	return report->errors == before ? 0 : -1;
}
