/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/shares.c: who may have one more session, and which addresses are one peer. */
#include "daemon/net/shares.h"

#include <check.h>
#include <stdio.h>

#define OWN ((uid_t)900)

static struct shares s;

static void setup(void)
{
	shares_init(&s, OWN);
}

static void teardown(void)
{
	shares_release(&s);
}

static struct peer user(int64_t uid)
{
	return (struct peer){.is_unix = true, .is_local = true, .uid = uid, .address = "unix"};
}

static struct peer at(const char *address)
{
	struct peer p = {.pid = -1, .uid = -1};

	snprintf(p.address, sizeof(p.address), "%s", address);
	p.is_local = strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
	return p;
}

/* How many sessions the peer gets beside `live` others, until one is refused so. It has left afterwards. */
static unsigned gets(struct peer peer, unsigned live, unsigned most, unsigned peer_max, enum share_left refused_as)
{
	struct share *share = NULL;
	enum share_left left;
	unsigned n = 0;

	while ((left = shares_ask(&s, &peer, live + n, most, peer_max)) == SHARE_LEFT) {
		share = shares_enter(&s, &peer);
		n++;
	}
	ck_assert_int_eq(left, refused_as);
	for (unsigned i = 0; i < n; i++)
		shares_leave(&s, share);
	return n;
}

/* Whether, of two sessions allowed, two of the first peer leave none for the second. */
static bool are_one(const char *first, const char *second)
{
	struct peer p = at(first), q = at(second);
	struct share *one = shares_enter(&s, &p), *two = shares_enter(&s, &p);
	bool room = shares_ask(&s, &q, 2, 100, 2) == SHARE_LEFT;

	ck_assert_int_eq(shares_ask(&s, &p, 2, 100, 2), SHARE_USED_UP);
	shares_leave(&s, one);
	shares_leave(&s, two);
	ck_assert_int_eq(shares_ask(&s, &p, 2, 100, 2), SHARE_LEFT);
	return !room;
}

FIXTURE(.setup = setup, .teardown = teardown)

/* Whoever has one address of loopback can use them all. */
TEST(loopback_is_one_peer_that_leaves_a_16th_to_others)
{
	static const char *const at_home[] = {"127.0.0.1:1", "127.0.0.2:1", "127.255.255.254:9", "[::1]:1"};
	struct share *share[94];
	struct peer p;

	for (size_t i = 0; i < 94; i++) {
		p = at(at_home[i % 4]);
		ck_assert_int_eq(shares_ask(&s, &p, (unsigned)i, 100, 7), SHARE_LEFT);
		share[i] = shares_enter(&s, &p);
	}
	for (size_t i = 0; i < 4; i++) {
		p = at(at_home[i]);
		ck_assert_int_eq(shares_ask(&s, &p, 94, 100, 7), SHARE_USED_UP);
	}
	for (size_t i = 0; i < 94; i++)
		shares_leave(&s, share[i]);
}

TEST(a_64th_of_the_sessions_is_kept_and_16_at_most)
{
	static const struct {
		unsigned most, kept;
	} row[] = {{0, 0}, {1, 0}, {2, 1}, {63, 1}, {64, 1}, {127, 1}, {128, 2}, {1000, 15}, {1024, 16}, {10000, 16}, {1000000, 16}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		ck_assert_uint_eq(shares_kept(row[i].most), row[i].kept);
}

TEST(what_is_kept_is_for_root_and_the_user_of_the_daemon)
{
	ck_assert_uint_eq(gets(user(1000), 90, 100, 0, SHARE_KEPT), 9);
	ck_assert_uint_eq(gets(at("10.0.0.5:1"), 99, 100, 0, SHARE_KEPT), 0);
	ck_assert_uint_eq(gets(user(OWN), 99, 100, 0, SHARE_FULL), 1);
	ck_assert_uint_eq(gets(user(0), 99, 100, 0, SHARE_FULL), 1);
	ck_assert_uint_eq(gets(user(0), 0, 10000, 7, SHARE_FULL), 10000);
}

TEST(a_greedy_peer_leaves_a_16th_to_others)
{
	ck_assert_uint_eq(gets(user(1000), 0, 10000, 0, SHARE_USED_UP), 9375);
	ck_assert_uint_eq(gets(user(1000), 200, 10000, 1000000, SHARE_USED_UP), 9375);
	ck_assert_uint_eq(gets(at("10.0.0.5:1"), 0, 10000, 0, SHARE_USED_UP), 9375);
	ck_assert_uint_eq(gets(at("127.0.0.1:1"), 0, 10000, 0, SHARE_USED_UP), 9375);
	ck_assert_uint_eq(gets(user(1000), 9375, 10000, 0, SHARE_KEPT), 609);
}

TEST(limits_peer_bounds_all_but_root_the_daemon_and_loopback)
{
	ck_assert_uint_eq(gets(user(1000), 0, 100, 7, SHARE_USED_UP), 7);
	ck_assert_uint_eq(gets(at("10.0.0.5:1"), 0, 100, 7, SHARE_USED_UP), 7);
	ck_assert_uint_eq(gets(at("127.0.0.1:1"), 0, 100, 7, SHARE_USED_UP), 94);
	ck_assert_uint_eq(gets(at("[::1]:1"), 0, 100, 7, SHARE_USED_UP), 94);
	ck_assert_uint_eq(gets(user(OWN), 0, 100, 7, SHARE_FULL), 100);
}

TEST(few_sessions_are_not_shared)
{
	ck_assert_uint_eq(gets(user(1000), 0, 15, 0, SHARE_KEPT), 14);
	ck_assert_uint_eq(gets(user(1000), 0, 1, 0, SHARE_FULL), 1);
}

TEST(a_limit_that_was_lowered_refuses)
{
	struct peer root = user(0), other = user(1000);

	ck_assert_int_eq(shares_ask(&s, &other, 500, 100, 0), SHARE_FULL);
	ck_assert_int_eq(shares_ask(&s, &root, 500, 100, 0), SHARE_FULL);
	ck_assert_int_eq(shares_ask(&s, &root, 0, 0, 0), SHARE_FULL);
}

TEST(an_ipv4_address_is_a_peer_whatever_its_port)
{
	ck_assert(are_one("10.0.0.5:1", "10.0.0.5:65535"));
	ck_assert(!are_one("10.0.0.5:1", "10.0.0.6:1"));
	ck_assert(!are_one("10.0.0.5:1", "10.0.0.55:1"));
}

TEST(all_addresses_of_a_64_are_one_peer)
{
	ck_assert(are_one("[2001:db8:0:7::1]:1", "[2001:db8:0:7:ffff:ffff:ffff:ffff]:2"));
	ck_assert(are_one("[2001:db8::1]:1", "[2001:db8:0:0:1::]:1"));
	ck_assert(!are_one("[2001:db8:0:7::1]:1", "[2001:db8:0:8::1]:1"));
	ck_assert(!are_one("[2001:db8:0:7::1]:1", "[2001:db8:1:7::1]:1"));
	ck_assert(!are_one("[2001:db8::1]:1", "10.0.0.5:1"));
}
