/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/rights/auth.c: AUTH, which the outer layer verifies, and what failures cost. */
#include "daemon/core/rights/rights.h"
#include "daemon/core/session/client.h"
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>

/* Over TCP from that address. */
static void dials(unsigned k, const char *from)
{
	struct peer peer = {.pid = -1, .uid = -1};

	snprintf(peer.address, sizeof(peer.address), "%s", from);
	session_opens_from(k, 0, &peer);
}

static void begins(void)
{
	cluster_begin(1);
	cluster.daemon[0].conf.users = true;
	service_reload(cluster.daemon[0].service, &cluster.daemon[0].conf);
}

/* Of all users that the tests name only these exist, and those alone who begin with this. */
static void begins_with_users(void)
{
	static const struct user_names known = {2, {{"ann", 3}, {"bob", 3}}};

	begins();
	cluster.daemon[0].conf.user_names = &known;
	service_reload(cluster.daemon[0].service, &cluster.daemon[0].conf);
}

/* Session k, of this address, and its AUTH. */
static void asks(unsigned k, const char *from, const char *user, const char *secret)
{
	dials(k, from);
	says(k, "AUTH %s %s", user, secret);
}

/* Session k sends AUTH, and the outer layer has verified it. */
static void fails(unsigned k)
{
	says(k, "AUTH ann wrong");
	verification_ends(0, false);
}

FIXTURE(.teardown = cluster_close)

TEST(a_secret_is_verified_outside_and_then_answered)
{
	begins();
	says(1, "@a AUTH ann \"a b\"");
	hears_nothing(1);
	ck_assert_str_eq(cluster.daemon[0].verified, "ann a b");
	says(1, "@p PING");
	hears(1, "@p OK");
	verification_ends(0, true);
	hears(1, "@a OK user=ann");
}

TEST(a_request_behind_an_untagged_auth_waits_for_it)
{
	begins();
	says(1, "AUTH ann secret");
	says(1, "PING");
	hears_nothing(1);
	verification_ends(0, true);
	hears(1, "OK user=ann");
	hears(1, "OK");
}

TEST(each_failure_makes_the_next_answer_later_and_the_third_ends_the_connection)
{
	begins();
	fails(1);
	hears(1, "ERR AUTH no user of that name has that secret");
	fails(1);
	hears_nothing(1);
	passes(99 * MSEC);
	hears_nothing(1);
	passes(1 * MSEC);
	hears(1, "ERR AUTH *");
	ck_assert(!hung_up(1));
	fails(1);
	passes(199 * MSEC);
	hears_nothing(1);
	passes(1 * MSEC);
	hears(1, "ERR AUTH *this was failure 3: hanging up");
	ck_assert(hung_up(1));
}

TEST(what_stands_behind_the_failure_that_ends_the_connection_is_not_carried_out)
{
	begins();
	for (unsigned i = 0; i < 2; i++) {
		fails(1);
		passes(SEC);
		hears(1, "ERR AUTH *");
	}
	fails(1);
	says(1, "DEFER q x");
	passes(SEC);
	hears(1, "ERR AUTH *hanging up");
	ck_assert(hung_up(1));
	says(2, "TAKE q");
	passes(SEC);
	hears(2, "BUSY *");
}

TEST(failures_before_a_success_do_not_end_the_connection)
{
	begins();
	for (unsigned i = 0; i < 2; i++) {
		fails(1);
		passes(SEC);
		fails(1);
		passes(SEC);
		says(1, "AUTH ann secret");
		verification_ends(0, true);
		passes(6 * SEC);
		ck_assert(!hung_up(1));
	}
}

TEST(a_success_is_late_as_well_after_a_failure)
{
	begins();
	fails(1);
	hears(1, "ERR AUTH *");
	says(1, "AUTH ann secret");
	verification_ends(0, true);
	hears_nothing(1);
	says(2, "PING");
	hears(2, "OK"); /* nobody else waits */
	passes(100 * MSEC);
	hears(1, "OK user=ann");
}

TEST(an_address_is_late_on_its_next_connection_and_no_other_is)
{
	begins();
	dials(3, "10.0.0.7:1000");
	fails(3);
	hears(3, "ERR AUTH *");
	dials(4, "10.0.0.7:1001");
	says(4, "AUTH ann secret");
	verification_ends(0, true);
	hears_nothing(4);
	dials(5, "10.0.0.8:1000");
	says(5, "AUTH ann secret");
	verification_ends(0, true);
	hears(5, "OK user=ann");
	passes(100 * MSEC);
	hears(4, "OK user=ann");
}

TEST(wrong_secrets_for_one_user_delay_no_other_on_the_same_address)
{
	begins();
	dials(3, "10.0.0.7:1000");
	fails(3);
	hears(3, "ERR AUTH *");
	dials(4, "10.0.0.7:1001");
	says(4, "AUTH bob secret");
	verification_ends(0, true);
	hears(4, "OK user=bob");
}

/* Each of a name of its own. */
static void invented_ask(unsigned from, unsigned to)
{
	char user[16];

	for (unsigned k = from; k < to; k++) {
		snprintf(user, sizeof(user), "u%u", k);
		asks(k, "10.0.0.7:1000", user, "wrong");
	}
}

TEST(invented_users_do_not_hold_back_one_who_exists)
{
	begins_with_users();
	invented_ask(10, 50);
	asks(3, "10.0.0.7:1001", "ann", "right");
	verification_ends(0, false);
	ck_assert_str_eq(cluster.daemon[0].verified, "ann right");
	hears_nothing(3);
	verification_ends(0, true);
	hears(3, "OK user=ann");
	ck_assert_uint_eq(cluster.daemon[0].verifies, 3);
}

TEST(nor_does_it_help_them_that_he_has_failed_once)
{
	begins_with_users();
	asks(3, "10.0.0.7:1001", "ann", "wrong");
	verification_ends(0, false);
	hears(3, "ERR AUTH *");
	invented_ask(10, 50);
	says(3, "AUTH ann right");
	verification_ends(0, false);
	ck_assert_str_eq(cluster.daemon[0].verified, "ann right");
	verification_ends(0, true);
	passes(100 * MSEC);
	hears(3, "OK user=ann");
}

/* A wrong secret takes as long for each name, and so do all others beside it. */
LOOP_TEST(no_time_tells_whether_a_user_exists, 2)
{
	static const unsigned answered[] = {10, 11, 12, 13, 3, 14, 5, 15, 4};
	const char *tried = _i ? "nan" : "ann";
	const size_t n = sizeof(answered) / sizeof(answered[0]);

	begins_with_users();
	invented_ask(10, 14);
	asks(3, "10.0.0.7:1001", tried, "wrong");
	invented_ask(14, 15);
	asks(4, "10.0.0.7:1002", tried, "wrong");
	asks(5, "10.0.0.7:1003", "bob", "wrong");
	invented_ask(15, 16);
	passes(SEC); /* the delay of a second failure is over */
	for (size_t i = 0; i < n; i++) {
		for (size_t later = i; later < n; later++)
			hears_nothing(answered[later]);
		verification_ends(0, false);
		hears(answered[i], "ERR AUTH *");
	}
	ck_assert_uint_eq(cluster.daemon[0].verifies, n);
}

TEST(a_flood_for_one_user_who_exists_does_not_hold_back_another)
{
	begins_with_users();
	for (unsigned k = 10; k < 50; k++)
		asks(k, "10.0.0.7:1000", "bob", "wrong");
	asks(3, "10.0.0.7:1001", "ann", "right");
	for (unsigned i = 0; i < 2; i++)
		verification_ends(0, false);
	ck_assert_str_eq(cluster.daemon[0].verified, "ann right");
	verification_ends(0, true);
	hears(3, "OK user=ann");
}

/* The AUTHs of invented users are answered on the way. */
TEST(who_exists_may_hang_up_while_his_secret_is_verified_for_another)
{
	begins_with_users();
	invented_ask(10, 13);
	asks(3, "10.0.0.7:1001", "ann", "right");
	asks(4, "10.0.0.7:1001", "ann", "wrong");
	verification_ends(0, false);
	ck_assert_str_eq(cluster.daemon[0].verified, "ann right");
	goes(3, GONE_HANGUP);
	verification_ends(0, true);
	hears(11, "ERR AUTH *");
	ck_assert_str_eq(cluster.daemon[0].verified, "ann wrong");
	goes(4, GONE_HANGUP);
	verification_ends(0, false);
	asks(5, "10.0.0.7:1001", "ann", "right");
	verification_ends(0, true);
	hears(5, "OK user=ann");
}

TEST(all_addresses_of_a_64_are_late_together_and_no_other_is)
{
	begins();
	dials(3, "[2001:db8:0:7::1]:1000");
	fails(3);
	hears(3, "ERR AUTH *");
	dials(4, "[2001:db8:0:7:a:b:c:d]:1000");
	says(4, "AUTH ann secret");
	verification_ends(0, true);
	hears_nothing(4);
	dials(5, "[2001:db8:0:8::1]:1000");
	says(5, "AUTH ann secret");
	verification_ends(0, true);
	hears(5, "OK user=ann");
	passes(100 * MSEC);
	hears(4, "OK user=ann");
}

TEST(an_address_is_never_more_than_five_seconds_late_and_is_forgiven)
{
	begins();
	for (unsigned k = 10; k < 20; k++) {
		char from[32];

		snprintf(from, sizeof(from), "10.0.0.7:%u", k);
		dials(k, from);
		fails(k);
		passes(5000 * MSEC);
		hears(k, "ERR AUTH *");
	}
	dials(3, "10.0.0.7:1");
	says(3, "AUTH ann secret");
	verification_ends(0, true);
	passes(4999 * MSEC);
	hears_nothing(3);
	passes(1 * MSEC);
	hears(3, "OK user=ann");
	passes(SUSPECT_FORGIVEN);
	says(3, "AUTH bob secret");
	verification_ends(0, true);
	hears(3, "OK user=bob");
}

/* Of a NAT, or of this host: anybody there may invent names. */
TEST(a_user_is_not_late_by_the_many_names_that_others_at_his_address_fail_with)
{
	begins();
	for (unsigned i = 0; i < 2 * SUSPECTS_OF_ONE; i++) {
		dials(3, "10.0.0.7:1000");
		says(3, "AUTH user%u wrong", i);
		verification_ends(0, false);
		hears(3, "ERR AUTH *");
		goes(3, GONE_HANGUP);
	}
	dials(3, "10.0.0.7:1000");
	says(3, "AUTH ann secret");
	verification_ends(0, true);
	hears(3, "OK user=ann");
}

TEST(users_of_an_address_that_succeed_take_nothing_of_its_share)
{
	begins();
	for (unsigned i = 0; i <= SUSPECTS_OF_ONE; i++) {
		dials(3, "10.0.0.7:1000");
		says(3, "AUTH user%u right", i);
		verification_ends(0, true);
		hears(3, "OK user=*");
		goes(3, GONE_HANGUP);
	}
}

TEST(one_address_does_not_make_the_daemon_forget_who_failed_at_others)
{
	struct instant now = {SEC};
	struct suspects all;
	char user[16];

	suspects_init(&all, (const uint64_t[2]){1, 2});
	suspect_failed(&all, SPAN("10.0.0.1"), SPAN("ann"), now);
	for (unsigned i = 0; i < 2 * SUSPECTS_MOST; i++) {
		snprintf(user, sizeof(user), "user%u", i);
		suspect_failed(&all, SPAN("10.0.0.2"), span_of(user), now);
	}
	ck_assert_uint_eq(suspect_failures(&all, SPAN("10.0.0.1"), SPAN("ann"), now), 1);
	ck_assert_uint_eq(suspect_failures(&all, SPAN("10.0.0.2"), span_of(user), now), 1);
	ck_assert_uint_eq(all.by_name.count, 1 + SUSPECTS_OF_ONE);
	suspects_release(&all);
}

TEST(those_who_failed_last_are_remembered_at_all_addresses_together)
{
	struct instant now = {SEC};
	struct suspects all;
	char address[24];

	suspects_init(&all, (const uint64_t[2]){1, 2});
	for (unsigned i = 0; i < 2 * SUSPECTS_MOST; i++) {
		snprintf(address, sizeof(address), "10.0.%u.%u", i / 256, i % 256);
		suspect_failed(&all, span_of(address), SPAN("ann"), now);
		ck_assert_uint_le(all.by_name.count, SUSPECTS_MOST);
		ck_assert_uint_eq(all.origins.count, all.by_name.count);
	}
	ck_assert_uint_eq(suspect_failures(&all, span_of(address), SPAN("ann"), now), 1);
	ck_assert_uint_eq(suspect_failures(&all, SPAN("10.0.0.1"), SPAN("ann"), now), 0);
	suspects_release(&all);
}

TEST(origins_take_turns)
{
	begins();
	dials(3, "10.0.0.7:1000");
	dials(4, "10.0.0.7:1001");
	dials(5, "10.0.0.7:1002");
	dials(6, "10.0.0.8:1000");
	says(3, "AUTH a s");
	says(4, "AUTH b s");
	says(5, "AUTH c s");
	says(6, "AUTH d s");
	ck_assert_str_eq(cluster.daemon[0].verified, "a s");
	verification_ends(0, true);
	ck_assert_str_eq(cluster.daemon[0].verified, "b s");
	verification_ends(0, true);
	ck_assert_str_eq(cluster.daemon[0].verified, "d s");
	verification_ends(0, true);
	ck_assert_str_eq(cluster.daemon[0].verified, "c s");
	verification_ends(0, true);
	hears(6, "OK user=d");
}

/* Else names that cost no verification would make the daemon forget those that did. */
LOOP_TEST(a_name_that_is_not_verified_is_not_remembered, 2)
{
	static const char *const wrong[] = {"AUTH \"\\x00\" x", "AUTH \"\" x"};

	begins();
	for (unsigned k = 3; k < 6; k++) {
		dials(k, "10.0.0.7:1000");
		says(k, "%s", wrong[_i]);
		hears(k, "ERR AUTH *");
	}
	says(5, "%s", wrong[_i]);
	hears_nothing(5); /* its connection has failed */
	ck_assert_uint_eq(cluster.daemon[0].verifies, 0);
}

TEST(who_hangs_up_before_he_is_verified_has_not_failed)
{
	begins();
	dials(3, "10.0.0.7:1000");
	dials(4, "10.0.0.7:1001");
	says(3, "AUTH a s");
	says(4, "AUTH b s");
	goes(4, GONE_RESET);
	goes(3, GONE_RESET);
	verification_ends(0, true);
	ck_assert_uint_eq(cluster.daemon[0].verifies, 1);
	dials(5, "10.0.0.7:1002");
	says(5, "AUTH b s");
	verification_ends(0, true);
	hears(5, "OK user=b");
}

TEST(a_half_closed_session_is_still_answered)
{
	begins();
	says(1, "AUTH ann secret");
	half_closes(1);
	verification_ends(0, true);
	hears(1, "OK user=ann");
	ck_assert(hung_up(1));
}

TEST(without_users_every_secret_is_wrong)
{
	cluster_begin(1);
	says(1, "AUTH ann secret");
	hears(1, "ERR AUTH no user of that name has that secret");
	ck_assert_uint_eq(cluster.daemon[0].verifies, 0);
}

TEST(one_session_has_one_auth_under_way)
{
	begins();
	says(1, "@a AUTH ann secret");
	says(1, "@b AUTH bob secret");
	hears(1, "@b ERR LIMIT another AUTH of this session is not answered yet");
	verification_ends(0, true);
	hears(1, "@a OK user=ann");
}

TEST(nothing_that_was_typed_is_logged)
{
	begins();
	for (unsigned i = 0; i < 3; i++) {
		says(1, "AUTH ann hunter2");
		verification_ends(0, false);
		passes(1000 * MSEC);
	}
	ck_assert(was_logged("auth-failed peer=*"));
	for (unsigned i = 0; i < 3; i++) {
		says(2, "AUTH ann hunter2");
		verification_ends(0, false);
		passes(1000 * MSEC);
	}
	ck_assert(!was_logged("*hunter2*"));
}

/* --- how many of one user wait --- */

/* The first is verified meanwhile, and does not wait: of 65 there wait 64. */
static void flood_of_ann(unsigned n, const char *from)
{
	for (unsigned i = 0; i < n; i++) {
		asks(10 + i, from, "ann", "wrong");
		hears_nothing(10 + i);
	}
}

TEST(of_one_user_and_origin_64_wait_and_the_oldest_is_told_so_when_one_more_comes)
{
	begins_with_users();
	flood_of_ann(65, "10.0.0.7:1000");
	asks(3, "10.0.0.7:1000", "ann", "secret");
	hears(11, "ERR LIMIT at most 64 AUTHs of one user and peer may wait, and this was the oldest: repeat it");
	hears_nothing(3);
	asks(4, "10.0.0.7:1000", "bob", "secret");
	asks(5, "10.0.0.8:1000", "ann", "secret");
	hears_nothing(12);
	says(11, "@a AUTH ann wrong");
	hears(12, "ERR LIMIT at most 64 *");
	hears_nothing(11);
}

TEST(the_right_secret_waits_for_64_wrong_ones_at_most)
{
	begins_with_users();
	flood_of_ann(65, "10.0.0.7:1000");
	for (unsigned i = 0; i < 40; i++)
		asks(80 + i, "10.0.0.7:1000", "ann", "wrong");
	asks(3, "10.0.0.7:1000", "ann", "secret");
	for (unsigned i = 0; i < 64; i++)
		verification_ends(0, false);
	ck_assert_str_eq(cluster.daemon[0].verified, "ann secret");
	verification_ends(0, true);
	passes(5 * SEC);
	hears(3, "OK user=ann");
	for (unsigned k = 4; k < CLUSTER_SESSIONS; k++)
		ignores(k);
}

/* Those that were found wrong wait, as all of one origin, until users whom nobody knows had their turns. */
TEST(nor_do_wrong_ones_hold_it_back_while_invented_users_take_turns)
{
	begins_with_users();
	for (unsigned i = 0; i < 8; i++) {
		dials(100 + i, "10.0.0.7:1000");
		says(100 + i, "AUTH invented%u x", i);
	}
	flood_of_ann(64, "10.0.0.7:1000");
	for (unsigned i = 0; i < 4; i++)
		verification_ends(0, false);
	asks(3, "10.0.0.7:1000", "ann", "secret");
	hears_nothing(3);
	hears(10, "ERR LIMIT *");
	for (unsigned i = 0; i < 64 && strcmp(cluster.daemon[0].verified, "ann secret") != 0; i++)
		verification_ends(0, false);
	verification_ends(0, true);
	passes(5 * SEC);
	hears(3, "OK user=ann");
	for (unsigned k = 4; k < CLUSTER_SESSIONS; k++)
		ignores(k);
}

TEST(whom_the_bound_refuses_has_not_failed)
{
	begins_with_users();
	flood_of_ann(65, "10.0.0.7:1000");
	for (unsigned i = 0; i < 4; i++) {
		asks(3 + i, "10.0.0.7:1000", "ann", "wrong");
		hears(11 + i, "ERR LIMIT *");
	}
	ck_assert_int_eq(figure(0, METRIC_AUTH_FAILED), 0);
}

TEST(one_of_64_that_hangs_up_makes_room)
{
	begins_with_users();
	flood_of_ann(65, "10.0.0.7:1000");
	goes(20, GONE_RESET);
	asks(3, "10.0.0.7:1000", "ann", "secret");
	hears_nothing(11);
	hears_nothing(3);
}

/* --- a peer of another host, where there are users and no rules --- */

TEST(from_another_host_auth_comes_first)
{
	static const char *const refused[] = {"LOCK a", "LIST", "STATS", "RESUME 1 x", "SHOW a", "CHECK a"};

	begins();
	dials(3, "10.0.0.7:1000");
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		says(3, "%s", refused[i]);
		hears(3, "ERR AUTH say first who you are: AUTH user secret");
	}
	says(3, "PING");
	hears(3, "OK");
	says(3, "HELLO 1");
	hears(3, "OK proto=1 *");
	says(3, "HELP PING");
	hears(3, "\\* *");
	hears(3, "\\* *");
	hears(3, "OK *");
	says(3, "AUTH ann secret");
	verification_ends(0, true);
	hears(3, "OK user=ann");
	says(3, "LOCK a");
	hears(3, "OK name=a *");
}

TEST(a_certificate_shows_who_it_is_as_well)
{
	begins();
	session_opens_from(3, 0, &(const struct peer){.pid = -1, .uid = -1, .address = "10.0.0.7:1000", .subject = "CN=db3"});
	says(3, "LOCK a");
	hears(3, "OK name=a *");
}

TEST(the_web_listener_has_a_token_of_its_own)
{
	begins();
	session_opens_from(3, 0, &(const struct peer){.pid = -1, .uid = -1, .address = "10.0.0.7:1000", .is_web = true});
	says(3, "LIST locks");
	hears(3, "OK n=0 *");
}

TEST(on_this_host_no_auth_is_needed)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK name=a *");
}
