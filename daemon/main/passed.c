/* SPDX-License-Identifier: BSD-2-Clause */
/* See passed.h. */
#include "daemon/main/passed.h"

#include "daemon/main/reach.h"

#include <string.h>

bool passed_is_tls(const struct systemd_socket *s)
{
	return strcmp(s->name, "tls") == 0;
}

unsigned passed_kind(const struct systemd_socket *s)
{
	bool open = reach_of_socket(s->fd);

	if (passed_is_tls(s))
		return open ? PASSED_TLS | PASSED_TLS_OPEN : PASSED_TLS;
	return open ? PASSED_PLAIN : 0;
}

unsigned passed_kinds(const struct systemd *s)
{
	unsigned kinds = 0;

	for (size_t i = 0; i < s->sockets_n; i++)
		kinds |= passed_kind(&s->sockets[i]);
	return kinds;
}

const char *passed_flaw(const struct conf *c, unsigned kinds)
{
	if ((kinds & PASSED_PLAIN) && !conf_is_protected(c))
		return "everybody who reaches this address could take and release locks; set auth.users_file or rules, let the socket unit listen on "
		       "127.0.0.1, or say 'insecure: yes'";
	if ((kinds & PASSED_TLS_OPEN) && !c->tls.client_ca_file && !conf_is_protected(c))
		return "everybody who reaches this address could take and release locks; set tls.client_ca_file, auth.users_file or rules, let the socket unit "
		       "listen on 127.0.0.1, or say 'insecure: yes'";
	if ((kinds & PASSED_TLS) && (!c->tls.cert_file || !c->tls.key_file))
		return "a socket called tls needs tls.cert_file and tls.key_file";
	return NULL;
}
