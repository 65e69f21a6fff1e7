/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/carry.c, settings.c: connections that do not go on over a restart, and what the log says of them. */
#include "tests/fixture/carried_upstream.h"
#include "tls/context.h"

#include <check.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void setup(void)
{
	real_upstream_begin(true);
	real_upstream.address[0] = (struct upstream_address){.label = "a", .path = real_upstream.server.path};
	real_upstream.conf.daemon_id = "d1";
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER u on >hush-4711 >hush-4712 ~* &* +@all");
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER v on >hush-4711 ~* &* +@all");
	real_upstream.conf.user = "u";
	real_upstream.conf.password = "hush-4711";
}

static void teardown(void)
{
	real_upstream_end();
}

/* `down` with this reason, told by the loop and once; then `up`, and it works. */
static void begins_anew(const char *reason)
{
	ck_assert_uint_eq(real_upstream.downs, 0);
	real_upstream_call_only(CALL_PROBE, 50, "");
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], reason);
	ck_assert_int_eq(real_upstream.defect[0], DEFECT_OTHER); /* it is no break of its connection */
	real_upstream_await(&real_upstream.ups, 2);
	answer_sink_check(&real_upstream.answers, 50, ANSWER_REFUSED, 0);
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 50)->text, reason);
	real_upstream_call(CALL_PROBE, 51, "");
	real_upstream_answered(51);
	ck_assert_uint_eq(real_upstream.downs, 1);
}

static void no_change(void)
{
	real_upstream.address[0].label = "another";
	real_upstream.conf.stall_us += SEC;
}

static void another_password(void)
{
	real_upstream.conf.password = "hush-4712";
}

static void another_user(void)
{
	real_upstream.conf.user = "v";
}

static void another_database(void)
{
	real_upstream.conf.database = 3;
}

static void another_prefix(void)
{
	real_upstream.conf.key_prefix = "keys:";
}

static void another_number_of_links(void)
{
	real_upstream.conf.links++;
}

static void fewer_links(void)
{
	real_upstream.conf.links = 1;
}

static void another_daemon(void)
{
	real_upstream.conf.daemon_id = "d2";
}

static void no_daemon(void)
{
	real_upstream.conf.daemon_id = NULL;
}

static void another_address(void)
{
	real_upstream.address[0].path = NULL;
	real_upstream.address[0].host = "127.0.0.1";
	real_upstream.address[0].port = (uint16_t)real_upstream.server.port;
}

static void (*const changes[])(void) = {no_change,   another_password, another_user, another_database, another_prefix, another_number_of_links,
					fewer_links, another_daemon,   no_daemon,    another_address};

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(connections_with_other_settings_begin_anew, sizeof(changes) / sizeof(*changes))
{
	if (changes[_i] == another_prefix)
		real_upstream.conf.daemon_id = NULL; /* the channel of the daemon says the prefix as well */
	real_upstream_up();
	if (real_upstream.conf.daemon_id)
		carried_upstream_subscribes();
	carried_upstream_pack();
	ck_assert_uint_eq(carried_upstream.fds.n, real_upstream.conf.daemon_id ? 3 : 2);
	changes[_i]();
	carried_upstream_unpack();
	if (_i > 0) {
		begins_anew("the daemon was restarted, and the settings of its connections have changed");
		return;
	}
	real_upstream_call(CALL_PROBE, 50, "");
	real_upstream_answered(50);
	ck_assert_uint_eq(real_upstream.downs, 0);
}

/* A node that goes away takes its descriptors with it: the fixture sees to that. */
TEST(the_number_of_nodes_may_change)
{
	real_upstream.address[1] = real_upstream.address[0];
	real_upstream.conf.nodes = 2;
	real_upstream_up();
	carried_upstream_pack();
	real_upstream.conf.nodes = 1;
	carried_upstream_unpack();
	carried_upstream_pack();
	real_upstream.conf.nodes = 2;
	carried_upstream_unpack();
	real_upstream_await(&real_upstream.ups, 3);
	ck_assert_uint_eq(real_upstream.downs, 0);
}

LOOP_TEST(a_link_that_is_not_handed_over_takes_its_node_down, 2)
{
	size_t place;

	real_upstream_up();
	carried_upstream_pack();
	place = carried_upstream.parcel->node[0].link[_i].fd;
	close(fdlist_take(&carried_upstream.fds, place));
	carried_upstream_unpack();
	begins_anew("the daemon was restarted, and its connections were not handed over");
}

/* The next process restarts before it has told anything. */
TEST(what_is_still_to_be_told_is_told_by_the_process_after)
{
	real_upstream_up();
	carried_upstream_pack();
	another_database();
	carried_upstream_unpack();
	carried_upstream_restart();
	begins_anew("the daemon was restarted, and the settings of its connections have changed");
	real_redis_kill(&real_upstream.server);
	real_upstream_await(&real_upstream.downs, 2);
	carried_upstream_pack();
	ck_assert(!carried_upstream.parcel->node[0].up); /* nothing is to be told any more */
	carried_upstream_unpack();
}

TEST(a_password_does_not_stand_in_the_segment)
{
	struct stat st;
	char *all;

	real_upstream_up();
	carried_upstream_pack();
	ck_assert_int_eq(fstat(segment_fd(carried_upstream.segment), &st), 0);
	all = malloc((size_t)st.st_size);
	ck_assert_int_eq(pread(segment_fd(carried_upstream.segment), all, (size_t)st.st_size, 0), st.st_size);
	ck_assert_ptr_null(memmem(all, (size_t)st.st_size, "hush-4711", 9));
	free(all);
	carried_upstream_unpack();
}

LOOP_TEST(that_a_server_refused_the_subscription_is_remembered, 2)
{
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER u resetchannels");
	real_upstream_up();
	real_upstream_await(&real_upstream.refusals, 1);
	carried_upstream_pack();
	if (_i)
		another_password();
	carried_upstream_unpack();
	real_redis_tell_line(&real_upstream.server, "ACL SETUSER u allchannels");
	real_upstream_await(&real_upstream.subscriptions, 1);
	ck_assert_uint_eq(real_upstream.downs, _i);
}

/* --- TLS ------------------------------------------------------------------------------------------------------------- */

static void certificate_write(const char *cert, const char *secret)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
	FILE *f;

	X509_set_version(x, X509_VERSION_3);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	ck_assert(X509_add_ext(x, names, -1));
	ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
	f = fopen(cert, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert(PEM_write_X509(f, x));
	fclose(f);
	f = fopen(secret, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
	fclose(f);
	X509_EXTENSION_free(names);
	X509_free(x);
	EVP_PKEY_free(key);
}

static struct ssl_ctx_st *context_of(const char *cert)
{
	struct tls_pem part[TLS_PARTS] = {{0}};
	struct ssl_ctx_st *context;
	struct tls_fault fault;
	char text[4096];
	FILE *f = fopen(cert, "r");

	ck_assert_ptr_nonnull(f);
	part[TLS_CA] = (struct tls_pem){text, fread(text, 1, sizeof(text), f)};
	fclose(f);
	ck_assert_msg(tls_context_client(part, &context, &fault) == 0, "%s", fault.why);
	return context;
}

TEST(plain_connections_do_not_go_on_where_tls_is_demanded)
{
	char cert[64], key[64];

	(void)snprintf(cert, sizeof(cert), "%s/cert", real_upstream.server.dir);
	(void)snprintf(key, sizeof(key), "%s/key", real_upstream.server.dir);
	certificate_write(cert, key);
	another_address();
	real_upstream.conf.connect_timeout_us = 500 * MSEC; /* Redis waits for the rest of what it takes for a command */
	real_upstream_up();
	carried_upstream_pack();
	real_upstream.conf.tls = context_of(cert);
	carried_upstream_unpack();
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "the daemon was restarted, and the settings of its connections have changed");
	real_upstream_await(&real_upstream.downs, 2); /* the server speaks no TLS */
	ck_assert_uint_eq(real_upstream.ups, 1);
}

TEST(connections_inside_tls_begin_anew)
{
	char cert[64], key[64], port[8];
	const char *const option[] = {"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients",
				      "no",         NULL};
	int tls_port = real_upstream.server.port;

	(void)snprintf(cert, sizeof(cert), "%s/cert", real_upstream.server.dir);
	(void)snprintf(key, sizeof(key), "%s/key", real_upstream.server.dir);
	(void)snprintf(port, sizeof(port), "%d", tls_port);
	certificate_write(cert, key);
	real_redis_kill(&real_upstream.server);
	real_upstream.server.port = 0;
	real_redis_start(&real_upstream.server, option);
	real_upstream.conf.user = real_upstream.conf.password = NULL;
	real_upstream.address[0] = (struct upstream_address){.label = "a", .host = "127.0.0.1", .port = (uint16_t)tls_port};
	real_upstream.conf.tls = context_of(cert);
	real_upstream_up();
	carried_upstream_pack();
	ck_assert_uint_eq(carried_upstream.fds.n, 0);
	real_upstream.conf.tls = context_of(cert);
	carried_upstream_unpack();
	begins_anew("the daemon was restarted, and TLS begins anew");
}
