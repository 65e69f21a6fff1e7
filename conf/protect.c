/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See protect.h. In doubt an address is beyond loopback: a wrong yes costs a line in the configuration, a wrong no opens the daemon to the network.
 */
#include "conf/protect.h"

#include "conf/conf.h"
#include "conf/schema.h"

#include <arpa/inet.h>
#include <string.h>

bool conf_host_is_local(const char *host)
{
	struct in_addr a;

	if (inet_pton(AF_INET, host, &a) == 1)
		return ntohl(a.s_addr) >> 24 == 127;
	return !strcmp(host, "::1") || !strcmp(host, "localhost");
}

bool conf_is_protected(const struct conf *c)
{
	return c->auth.users_file || c->rules || c->insecure;
}

static bool protection_is_known(const struct conf *c)
{
	return !c->origin[KEY_AUTH_USERS_FILE].bad && !c->origin[KEY_RULES].bad && !c->origin[KEY_INSECURE].bad;
}

static void address_check(const struct conf *c, enum conf_key key, const char *host, const char *what, struct conf_report *report)
{
	const struct conf_origin *o = &c->origin[key];

	if (!host || o->bad || !protection_is_known(c) || conf_host_is_local(host) || conf_is_protected(c))
		return;
	report_error(report, o->source, (struct source_place){o->line, o->column},
		     "everybody who reaches this address could take and release locks; set %s, use 127.0.0.1, or say 'insecure: yes'", what);
}

/* A rule for users when there are none. */
static void rules_check(const struct conf *c, struct conf_report *report)
{
	const struct conf_origin *o = &c->origin[KEY_RULES];

	if (!c->rules || o->bad || c->auth.users_file || c->origin[KEY_AUTH_USERS_FILE].bad)
		return;
	for (size_t i = 0; i < c->rules->count; i++)
		if (c->rules->rule[i].user)
			report_warning(report, o->source, (struct source_place){c->rules->rule[i].line, 1},
				       "nobody is user '%s', as there are no users: set auth.users_file", c->rules->rule[i].user);
}

void protect_check(const struct conf *c, struct conf_report *report)
{
	address_check(c, KEY_LISTEN_TCP, c->listen.tcp_host, "auth.users_file or rules", report);
	if (!c->tls.client_ca_file && !c->origin[KEY_TLS_CLIENT_CA_FILE].bad)
		address_check(c, KEY_LISTEN_TLS, c->listen.tls_host, "tls.client_ca_file, auth.users_file or rules", report);
	rules_check(c, report);
}
