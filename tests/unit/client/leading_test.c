/* SPDX-License-Identifier: BSD-2-Clause */
/* The leader of libredlock(3), as printed there, against a scripted daemon. */
#include "client/lib/redlock.h"
#include "tests/fixture/fake_daemon.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define STEP_US  100000
#define PAUSE_US 1000

static int64_t stepped[8];
static unsigned steps;

static void step(int64_t fence)
{
	stepped[steps++ % 8] = fence;
}

static int lead(struct redlock *c, const char *name)
{
	struct redlock_options campaign = {.size = sizeof(campaign), .wait_ms = REDLOCK_FOREVER};
	struct redlock_grant grant;
	int r;

	while (!(r = redlock_lock(c, name, &campaign, &grant))) {
		do {
			if (redlock_left_us(&grant) > STEP_US)
				step(grant.fence);
			usleep(PAUSE_US);
			r = redlock_check(c, name, &grant);
		} while (!r || r == -ECONNABORTED || (r == REDLOCK_REFUSED &&
			 !strcmp(redlock_code(c), "QUORUM")));
		if (r < 0)
			break;
	}
	return r;
}

#define GRANT(fence, valid) "> OK name=n fence=" fence " valid_ms=" valid " ttl_ms=9000 count=1\n"
#define TERM(fence)         "< LOCK n wait=forever$\n" GRANT(fence, "9000") "< CHECK n$\n" GRANT(fence, "8000")

TEST(a_leader_works_while_it_believes_and_campaigns_again)
{
	struct fake_daemon f;
	struct redlock *c;
	int r;

	fake_daemon_begin(&f, TERM("17") "< CHECK n$\n" GRANT("17", "8000") "< CHECK n$\n> ERR QUORUM ask again\n"
					 "< CHECK n$\n" GRANT("17", "50") "< CHECK n$\n> ERR LOST n was lost\n"
					 TERM("19") "< CHECK n$\n> ERR LOST n was lost\n< LOCK n wait=forever$\n> ERR LIMIT too many\n=\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	r = lead(c, "n");
	ck_assert_int_eq(r, REDLOCK_REFUSED);
	redlock_close(c);
	fake_daemon_end(&f);
	/* Not with the 50 ms that were left at last. */
	ck_assert_uint_eq(steps, 4);
	ck_assert_int_eq(stepped[2], 17);
	ck_assert_int_eq(stepped[3], 19);
}
