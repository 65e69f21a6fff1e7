/* SPDX-License-Identifier: BSD-2-Clause */
/* See passed.h. */
#include "daemon/main/passed.h"
#include "conf/conf.h"
#include "daemon/net/address.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* --- whether clients on other hosts can reach it. A wrong yes costs a wait after a reboot, a wrong no exclusion ----------- */

bool reach_of_host(const char *tcp)
{
	return tcp && !conf_host_is_local(tcp);
}

bool reach_of_socket(int fd)
{
	struct sockaddr_storage address;
	socklen_t n = sizeof(address);
	struct peer peer;

	if (getsockname(fd, (struct sockaddr *)&address, &n))
		return errno != ENOTSOCK;
	address_peer(fd, (const struct sockaddr *)&address, &peer);
	return !peer.is_local;
}

/* --- what a configuration needs for passed sockets ------------------------------------------------------------------------ */

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
