/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the files, and reports what is wrong with them. A key must never be logged, and leaves memory as soon as OpenSSL has it. */
#include "daemon/files/credentials.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "tls/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AHEAD_DAYS 21
#define DAY_S      86400

struct usage {
	enum conf_key key[TLS_PARTS];
	enum conf_key whole; /* the key to blame if no single file is wrong */
	int (*make)(const struct tls_pem part[TLS_PARTS], struct ssl_ctx_st **ret_context, struct tls_fault *ret_fault);
};

static const struct usage usage_listen = {
	.key = {KEY_TLS_CERT_FILE, KEY_TLS_KEY_FILE, KEY_TLS_CLIENT_CA_FILE}, .whole = KEY_LISTEN_TLS, .make = tls_context_server};
static const struct usage usage_redis = {
	.key = {KEY_REDIS_TLS_CERT_FILE, KEY_REDIS_TLS_KEY_FILE, KEY_REDIS_TLS_CA_FILE}, .whole = KEY_REDIS_TLS, .make = tls_context_client};

struct credential_error {
	enum conf_key key;
	char why[200];
};

/* --- from files to a context ----------------------------------------------------------------------------------------- */

static void unreadable(struct credential_error *m, enum conf_key key, int error)
{
	m->key = key;
	if (error == -ENOTSUP)
		snprintf(m->why, sizeof(m->why), "no regular file");
	else
		snprintf(m->why, sizeof(m->why), "cannot be read: %s", strerror(-error));
}

static int texts_read(const struct conf *c, const struct usage *u, char *text[TLS_PARTS], struct tls_pem pem[TLS_PARTS], struct credential_error *m)
{
	for (int i = 0; i < TLS_PARTS; i++) {
		int r = conf_file(c, u->key[i], &text[i], &pem[i].n);

		if (r < 0) {
			unreadable(m, u->key[i], r);
			return -1;
		}
		pem[i].text = text[i];
	}
	return 0;
}

static int context_make(const struct conf *c, const struct usage *u, struct ssl_ctx_st **ret_context, struct credential_error *m)
{
	struct tls_pem pem[TLS_PARTS] = {{0}};
	char *text[TLS_PARTS] = {NULL};
	struct tls_fault fault;
	int r = texts_read(c, u, text, pem, m);

	if (!r) {
		r = u->make(pem, ret_context, &fault);
		if (r) {
			m->key = u->key[fault.part];
			snprintf(m->why, sizeof(m->why), "%s", fault.why);
		}
	}
	for (int i = 0; i < TLS_PARTS; i++) {
		if (text[i])
			explicit_bzero(text[i], pem[i].n);
		free(text[i]);
	}
	return r;
}

/* --- check ----------------------------------------------------------------------------------------------------------- */

static void usage_refuse(const struct conf *c, const struct usage *u, const struct credential_error *m, struct conf_report *report)
{
	const char *file = conf_file_name(c, m->key);

	conf_refuse(c, file ? m->key : u->whole, report, "%s%s%s", file ? file : "", file ? ": " : "", m->why);
}

/* Reports each file that cannot be read. False: there is one, or a key was refused before, so no context can be made. */
static bool files_read(const struct conf *c, const struct usage *u, struct conf_report *report)
{
	bool all = !c->origin[u->whole].bad;

	for (int i = 0; i < TLS_PARTS; i++) {
		struct credential_error m;
		char *text = NULL;
		size_t n = 0;
		int r = c->origin[u->key[i]].bad ? 1 : conf_file(c, u->key[i], &text, &n);

		if (text)
			explicit_bzero(text, n);
		free(text);
		if (r < 0) {
			unreadable(&m, u->key[i], r);
			usage_refuse(c, u, &m, report);
		}
		all &= r == 0;
	}
	return all;
}

/* A certificate needs its key, and the reverse. conf_check has already reported one without the other, and a listener without them. */
static bool is_complete(const struct conf *c, const struct usage *u)
{
	bool cert = conf_file_name(c, u->key[TLS_CERT]), key = conf_file_name(c, u->key[TLS_KEY]);

	return cert == key && (cert || u != &usage_listen);
}

/* Texts about a certificate: it is in a file, or a server shows it. */
struct shown {
	const char *key, *ended, *ends_soon;
};

static const struct shown in_file = {"file", "it, or an authority in the file, has ended: nobody accepts it; renew the one that has, and reload",
                                     "it, or an authority in the file, ends then: renew that in time, and reload"};

static int64_t left_s(int64_t ends)
{
	return ends - clock_wall_us() / SEC;
}

static void end_warn(const struct conf *c, enum conf_key key, int64_t left, struct conf_report *report)
{
	const char *file = conf_file_name(c, key);

	if (left <= 0)
		conf_warn(c, key, report, "%s: %s", file, in_file.ended);
	else if (left < AHEAD_DAYS * DAY_S)
		conf_warn(c, key, report, "%s: it, or an authority in the file, ends in %lld days; renew that in time, and reload", file,
		          (long long)(left / DAY_S));
}

static void usage_check(const struct conf *c, const struct usage *u, struct conf_report *report)
{
	struct ssl_ctx_st *context;
	struct credential_error m;

	if (!files_read(c, u, report) || !is_complete(c, u))
		return;
	if (context_make(c, u, &context, &m)) {
		usage_refuse(c, u, &m, report);
		return;
	}
	end_warn(c, u->key[TLS_CERT], left_s(tls_context_ends(context)), report);
	tls_context_free(context);
}

int credentials_check(const struct conf *c, struct conf_report *report)
{
	unsigned before = report->errors;

	if (c->listen.tls_host || (c->listen.api.label && c->api.tls))
		usage_check(c, &usage_listen, report);
	if (c->redis.tls.on)
		usage_check(c, &usage_redis, report);
	return report->errors == before ? 0 : -1;
}

/* --- in use ---------------------------------------------------------------------------------------------------------- */

static const struct shown by_server = {
	"server", "it or its authority (redis.tls.ca_file) has ended: no new connection is made; renew the one with this date",
	"it or its authority (redis.tls.ca_file) ends: renew the one with this date in time"};

static void log_end(const struct shown *by, const char *name, int64_t ends, enum log_level usual)
{
	int64_t left = left_s(ends);
	enum log_level level = left <= 0 ? LOG_ERROR : left < AHEAD_DAYS * DAY_S ? LOG_WARN : usual;
	time_t when = (time_t)ends;
	char text[32] = "?", quoted[512];
	struct tm tm;

	if (ends == INT64_MAX)
		return;
	if (gmtime_r(&when, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	log_event(level, "certificate", "%s=%s ends=%s days=%lld%s%s%s", by->key, log_quote(name ? name : "", quoted, sizeof(quoted)), text,
	          (long long)(left / DAY_S), left <= 0 ? " error=\"" : level == LOG_WARN ? " note=\"" : "",
	          left <= 0 ? by->ended : level == LOG_WARN ? by->ends_soon : "", level <= LOG_WARN ? "\"" : "");
}

static struct ssl_ctx_st *context_use(const struct conf *c, const struct usage *u, int64_t *ends)
{
	struct ssl_ctx_st *context;
	struct credential_error m;
	char file[512], why[300];

	if (context_make(c, u, &context, &m)) {
		log_event(LOG_ERROR, "tls", "file=%s error=%s", log_quote(conf_file_name(c, m.key) ? conf_file_name(c, m.key) : "", file, sizeof(file)),
		          log_quote(m.why, why, sizeof(why)));
		return NULL;
	}
	*ends = tls_context_ends(context);
	log_end(&in_file, conf_file_name(c, u->key[TLS_CERT]), *ends, LOG_INFO);
	return context;
}

struct ssl_ctx_st *credentials_listen(struct credentials *k, const struct conf *c)
{
	return context_use(c, &usage_listen, &k->listen_ends);
}

struct ssl_ctx_st *credentials_redis(struct credentials *k, const struct conf *c)
{
	return context_use(c, &usage_redis, &k->redis_ends);
}

void credentials_init(struct credentials *k)
{
	*k = (struct credentials){.listen_ends = INT64_MAX, .redis_ends = INT64_MAX, .report_at = instant_add(clock_boottime(), DAY_S * SEC)};
}

void credentials_tick(struct credentials *k, const struct conf *c)
{
	struct instant now;

	if (k->listen_ends == INT64_MAX && k->redis_ends == INT64_MAX)
		return;
	now = clock_boottime();
	if (instant_before(now, k->report_at))
		return;
	k->report_at = instant_add(now, DAY_S * SEC);
	log_end(&in_file, conf_file_name(c, KEY_TLS_CERT_FILE), k->listen_ends, LOG_DEBUG);
	log_end(&in_file, conf_file_name(c, KEY_REDIS_TLS_CERT_FILE), k->redis_ends, LOG_DEBUG);
}

void credentials_look(struct credentials *k, unsigned server, const char *label, int64_t ends)
{
	struct instant now;

	if (ends == INT64_MAX || left_s(ends) >= AHEAD_DAYS * DAY_S)
		return;
	now = clock_boottime();
	if (instant_before(now, k->server_due[server]))
		return;
	k->server_due[server] = instant_add(now, DAY_S * SEC);
	log_end(&by_server, label, ends, LOG_WARN);
}
