/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/crowds.c: how many sessions each peer has, and which addresses are one peer. */
#include "daemon/net/crowds.h"

#include <check.h>
#include <stdio.h>

#define OWN ((uid_t)900)

static struct crowds c;

static void setup(void)
{
	crowds_init(&c, OWN);
}

static void teardown(void)
{
	crowds_release(&c);
}

static struct peer at(const char *address)
{
	struct peer p = {.pid = -1, .uid = -1};

	snprintf(p.address, sizeof(p.address), "%s", address);
	return p;
}

/* Whether, of two sessions allowed, two of the first peer leave none for the second. */
static bool are_one(const char *first, const char *second)
{
	struct peer p = at(first), q = at(second);
	struct crowd *one = crowds_enter(&c, &p), *two = crowds_enter(&c, &p);
	bool room = crowds_has_room(&c, &q, 2);

	ck_assert(!crowds_has_room(&c, &p, 2));
	crowds_leave(&c, one);
	crowds_leave(&c, two);
	ck_assert(crowds_has_room(&c, &p, 2));
	return !room;
}

FIXTURE(.setup = setup, .teardown = teardown)

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

TEST(root_the_daemon_and_loopback_have_no_bound)
{
	struct peer root = {.is_unix = true, .is_local = true}, own = {.is_unix = true, .is_local = true, .uid = OWN};
	struct peer here = at("127.0.0.1:1"), here6 = at("[::1]:1"),
		    other = {.is_unix = true, .is_local = true, .uid = 33};
	const struct peer *peer[] = {&root, &own, &here, &here6, &other};
	struct crowd *crowd;

	here.is_local = here6.is_local = true;
	for (unsigned i = 0; i < 5; i++) {
		crowd = crowds_enter(&c, peer[i]);
		ck_assert(crowds_has_room(&c, peer[i], 1) == (i < 4));
		crowds_leave(&c, crowd);
	}
}
