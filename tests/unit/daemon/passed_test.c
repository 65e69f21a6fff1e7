/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/passed.c: what the sockets of a service manager ask of the configuration. */
#include "daemon/main/passed.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALL (PASSED_PLAIN | PASSED_TLS | PASSED_TLS_OPEN)

static char some[] = "some";

/* The kind of a socket of this name that is bound to this address. */
static unsigned kind_of(const char *name, const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct systemd s = {.sockets_n = 1, .sockets[0].fd = socket(AF_INET, SOCK_STREAM, 0)};
	unsigned kind;

	snprintf(s.sockets[0].name, sizeof(s.sockets[0].name), "%s", name);
	ck_assert_int_eq(inet_pton(AF_INET, address, &at.sin_addr), 1);
	ck_assert_int_eq(bind(s.sockets[0].fd, (struct sockaddr *)&at, sizeof(at)), 0);
	kind = passed_kinds(&s);
	close(s.sockets[0].fd);
	return kind;
}

TEST(a_socket_has_its_kind_by_its_name_and_its_address)
{
	struct systemd none = {.sockets_n = 0};

	ck_assert_uint_eq(passed_kinds(&none), 0);
	ck_assert_uint_eq(kind_of("redlockd.socket", "127.0.0.1"), 0);
	ck_assert_uint_eq(kind_of("redlockd.socket", "0.0.0.0"), PASSED_PLAIN);
	ck_assert_uint_eq(kind_of("tls", "127.0.0.1"), PASSED_TLS);
	ck_assert_uint_eq(kind_of("tls", "0.0.0.0"), PASSED_TLS | PASSED_TLS_OPEN);
}

TEST(what_other_hosts_reach_needs_protection)
{
	struct conf c = {.tls = {.cert_file = some, .key_file = some}};

	ck_assert(!passed_flaw(&c, 0));
	ck_assert_ptr_nonnull(strstr(passed_flaw(&c, PASSED_PLAIN), "set auth.users_file or rules,"));
	ck_assert_ptr_nonnull(strstr(passed_flaw(&c, PASSED_TLS | PASSED_TLS_OPEN), "set tls.client_ca_file, auth.users_file or rules,"));
	ck_assert(!passed_flaw(&c, PASSED_TLS));
	c.insecure = true;
	ck_assert(!passed_flaw(&c, ALL));
	c.insecure = false;
	c.auth.users_file = some;
	ck_assert(!passed_flaw(&c, ALL));
}

TEST(certificates_of_clients_protect_tls_alone)
{
	struct conf c = {.tls = {.cert_file = some, .key_file = some, .client_ca_file = some}};

	ck_assert(!passed_flaw(&c, PASSED_TLS | PASSED_TLS_OPEN));
	ck_assert(passed_flaw(&c, PASSED_PLAIN));
}

TEST(a_socket_for_tls_needs_a_certificate_and_its_key)
{
	struct conf c = {.insecure = true, .tls.cert_file = some};

	ck_assert_str_eq(passed_flaw(&c, PASSED_TLS), "a socket called tls needs tls.cert_file and tls.key_file");
	ck_assert(!passed_flaw(&c, PASSED_PLAIN));
	c.tls.cert_file = NULL;
	c.tls.key_file = some;
	ck_assert(passed_flaw(&c, PASSED_TLS));
}
