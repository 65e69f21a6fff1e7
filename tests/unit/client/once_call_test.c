/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/once.c: a run once in a while, against a scripted daemon. */
#include "tests/fixture/client_of_fake.h"

#include <errno.h>
#include <string.h>

#define GRANTED "< LOCK n\n> OK name=n fence=7 valid_ms=900 ttl_ms=1000 count=1\n< CHECK n$\n> OK name=n fence=7 valid_ms=900 count=1\n"
#define RECORD  " state=due failed=0 payload=\"host=h began=2026-01-02T03:04:05Z took_ms=12 status=3\"\n"
#define LISTED  "< LIST jobs limit=8 prefix=once/n$\n"
#define FREED   "< UNLOCK n\n> OK name=n count=0\n"

static struct redlock_run last;
static int calls;

static int runs(void *arg)
{
	calls++;
	return *(int *)arg;
}

static int once(const char *script, int status)
{
	begins(script);
	memset(&last, 0x55, sizeof(last));
	calls = 0;
	return redlock_once(c, "n", 3600000, runs, &status, &last);
}

TEST(a_run_is_recorded_before_the_old_record_goes)
{
	ck_assert_int_eq(once(GRANTED LISTED "> * queue=once/n job=a due_ms=0" RECORD "> OK n=1\n< CHECK n$\n> OK name=n fence=7 valid_ms=900 count=1\n"
			      "< DEFER once/n \"host=\n> OK queue=once/n job=b\n< DROP once/n a$\n> OK\n" FREED "=\n", 5), 0);
	ck_assert_int_eq(calls, 1);
	ck_assert(last.ran);
	ck_assert_int_eq(last.status, 5);
	ck_assert_int_gt(last.next_ms, 3500000);
	ends();
}

TEST(what_is_not_due_is_not_run_and_told)
{
	ck_assert_int_eq(once(GRANTED LISTED "> * queue=once/n job=a due_ms=10" RECORD "> * queue=once/n job=b due_ms=90 state=due failed=0 payload=other\n"
			      "> OK n=2\n" FREED "=\n", 0), 0);
	ck_assert_int_eq(calls, 0);
	ck_assert(!last.ran);
	ck_assert_str_eq(last.host, "h");
	ck_assert_str_eq(last.began, "2026-01-02T03:04:05Z");
	ck_assert_int_eq(last.took_ms, 12);
	ck_assert_int_eq(last.status, 3);
	ck_assert_int_eq(last.next_ms, 10);
	ends();
}

TEST(what_somebody_else_runs_is_not_run)
{
	ck_assert_int_eq(once("< LOCK n\n> BUSY name=n holder=x\n=\n", 0), 0);
	ck_assert_int_eq(calls, 0);
	ck_assert(!last.ran);
	ends();
}

TEST(a_refusal_outlives_the_release)
{
	ck_assert_int_eq(once(GRANTED LISTED "> ERR UNAVAILABLE the home does not answer\n" FREED "=\n", 0), REDLOCK_REFUSED);
	ck_assert_int_eq(calls, 0);
	ck_assert_str_eq(redlock_code(c), "UNAVAILABLE");
	ck_assert_ptr_nonnull(strstr(redlock_errmsg(c), "the home does not answer"));
	ends();
}

TEST(a_run_whose_lock_was_lost_is_not_recorded)
{
	ck_assert_int_eq(once(GRANTED LISTED "> OK n=0\n< CHECK n$\n> ERR LOST reason=broken\n< UNLOCK n\n> ERR NOTHELD n\n=\n", 0), REDLOCK_REFUSED);
	ck_assert_int_eq(calls, 1);
	ck_assert_str_eq(redlock_code(c), "LOST");
	ends();
}

TEST(a_connection_that_broke_tells_so)
{
	ck_assert_int_lt(once(GRANTED LISTED, 0), 0);
	ck_assert_int_eq(calls, 0);
	ends();
}

TEST(the_last_run_is_told_or_that_there_is_none)
{
	char name[REDLOCK_NAME_BYTES];

	begins(LISTED "> OK n=0\n" LISTED "> * queue=once/n job=a due_ms=10" RECORD "> OK n=1\n=\n");
	ck_assert_int_eq(redlock_once_status(c, "n", &last), 0);
	ck_assert(!last.ran);
	ck_assert_int_eq(redlock_once_status(c, "n", &last), 0);
	ck_assert(last.ran);
	ck_assert_int_eq(last.status, 3);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(redlock_once_status(c, name, &last), -EMSGSIZE);
	ck_assert(!last.ran);
	ends();
}
