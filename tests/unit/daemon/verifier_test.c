/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/verifier.c: secrets against hashes of crypt(3). */
#include "daemon/main/verifier.h"
#include "tests/fixture/loop.h"

#include <check.h>
#include <crypt.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#define QUICK "$6$rounds=1000$salt$"
#define SLOW  "$6$rounds=300000$salt$"

static struct event_base *base;
static struct verifier *verifier;
static unsigned answered;
static uint64_t number;
static bool ok;

static void on_verified(void *context, uint64_t of, bool is_ok)
{
	ck_assert_ptr_eq(context, &answered);
	answered++;
	number = of;
	ok = is_ok;
}

static void setup(void)
{
	base = event_base_new();
	verifier = verifier_new(base, on_verified, &answered);
	answered = 0;
}

static void teardown(void)
{
	verifier_free(verifier);
	event_base_free(base);
}

static const char *hash_of(const char *secret, const char *setting)
{
	static struct crypt_data data;

	return crypt_r(secret, setting, &data);
}

static void verify(uint64_t of, const char *hash, const char *decoy, const char *secret, size_t n)
{
	char copy[64], wiped[64] = "";

	memcpy(copy, secret, n);
	verifier_begin(verifier, of, hash, decoy, copy, n);
	ck_assert_mem_eq(copy, wiped, n);
}

static void expect(uint64_t of, bool is_ok)
{
	ck_assert_uint_eq(answered, 0);
	ck_assert(loop_await(base, &answered, 1));
	ck_assert_uint_eq(number, of);
	ck_assert_int_eq(ok, is_ok);
	answered = 0;
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 30)

TEST(the_right_secret_alone_is_right)
{
	const char *hash = hash_of("secret", QUICK);

	verify(1, hash, NULL, "secret", 6);
	expect(1, true);
	verify(2, hash, NULL, "Secret", 6);
	expect(2, false);
	verify(3, hash, NULL, "secret\0x", 8);
	expect(3, false);
	verify(4, "no hash", NULL, "secret", 6);
	expect(4, false);
}

TEST(a_user_whom_there_is_not_has_no_right_secret)
{
	verify(1, NULL, hash_of("secret", QUICK), "secret", 6);
	expect(1, false);
	verify(2, NULL, NULL, "secret", 6);
	expect(2, false);
}

TEST(a_secret_that_is_known_to_be_right_is_right)
{
	char secret[] = "secret";

	verifier_accept(verifier, 1, secret, 6);
	ck_assert_mem_eq(secret, "\0\0\0\0\0\0", 6);
	expect(1, true);
}

/* The daemon gave it up for a restart, which then failed. */
TEST(a_later_verification_takes_the_place_of_one_that_is_under_way)
{
	char slow[CRYPT_OUTPUT_SIZE];

	(void)snprintf(slow, sizeof(slow), "%s", hash_of("secret", SLOW));
	verify(1, slow, NULL, "secret", 6);
	verify(2, slow, NULL, "guess", 5);
	expect(2, false);
	verify(3, slow, NULL, "secret", 6);
	verify(4, NULL, NULL, "guess", 5);
	expect(4, false);
	loop_run(base, 1000);
	ck_assert_uint_eq(answered, 0);
}

TEST(a_verifier_may_be_freed_while_a_verification_is_under_way)
{
	verify(1, hash_of("secret", SLOW), NULL, "secret", 6);
	verifier_free(verifier);
	verifier = NULL;
	ck_assert_uint_eq(answered, 0);
}
