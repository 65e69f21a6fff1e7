/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/descriptors.c: what is left for clients. */
#include "daemon/main/descriptors.h"

#include <check.h>
#include <sys/resource.h>

static void limit_set(rlim_t n)
{
	struct rlimit limit;

	ck_assert(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = n;
	ck_assert(!setrlimit(RLIMIT_NOFILE, &limit));
}

TEST(a_daemon_keeps_descriptors_for_itself)
{
	struct conf c = {.store = STORE_MEMORY};

	limit_set(100);
	ck_assert_uint_eq(descriptors_for_clients(&c, 0), 100 - 32);
	ck_assert_uint_eq(descriptors_for_clients(&c, 2), 100 - 32 - 2);
}

TEST(each_connection_to_a_store_has_its_descriptor)
{
	struct conf c = {.store = STORE_REDIS, .redis = {.nodes = 3, .links = 2}};
	struct conf_sentinel sentinel = {.count = 3};

	limit_set(100);
	ck_assert_uint_eq(descriptors_for_clients(&c, 0), 100 - 32 - 3 * (2 + 2));
	c.redis.nodes = 5;
	c.redis.links = 4;
	ck_assert_uint_eq(descriptors_for_clients(&c, 0), 100 - 32 - 5 * (4 + 2));
	c.redis.node[2].sentinel = &sentinel;
	ck_assert_uint_eq(descriptors_for_clients(&c, 0), 100 - 32 - 5 * (4 + 2) - 3);
}

TEST(clients_get_no_descriptor_when_none_is_left)
{
	struct conf c = {.store = STORE_REDIS, .redis = {.nodes = 1, .links = 2}};

	limit_set(37);
	ck_assert_uint_eq(descriptors_for_clients(&c, 0), 1);
	ck_assert_uint_eq(descriptors_for_clients(&c, 1), 0);
	limit_set(20);
	ck_assert_uint_eq(descriptors_for_clients(&c, 0), 0);
}
