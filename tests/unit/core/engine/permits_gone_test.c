/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/hold.c, hold.c: what is left of the mark of a semaphore whose last permit went to nobody, as its client may rely on it. */
#include "tests/fixture/cluster.h"

#include <check.h>

/* Session 1, of another host, had the only permit, and may rely on it for 10 s. Session 2 asks another daemon. */
static void only_permit_is_left(void)
{
	two_daemons(3);
	session_opens_from_afar(1, 0);
	says(1, "ACQUIRE a limit=3");
	hears(1, "OK *");
	goes(1, GONE_RESET);
	passes(100 * MSEC);
}

FIXTURE(.teardown = cluster_close)

TEST(the_other_slots_are_granted_at_once)
{
	only_permit_is_left();
	for (unsigned i = 0; i < 2; i++) {
		says(3, "ACQUIRE a limit=3");
		hears(3, "OK name=a permit=? *");
	}
	says(3, "ACQUIRE a limit=3");
	hears(3, "BUSY *");
	says(2, "ACQUIRE a limit=3");
	hears(2, "BUSY *");
	passes(11 * SEC);
	says(2, "ACQUIRE a limit=3");
	hears(2, "OK *");
}

TEST(neither_a_lock_nor_another_limit_is_granted_until_its_client_ceases_to_believe)
{
	only_permit_is_left();
	says(3, "ACQUIRE a limit=3");
	says(3, "RELEASE a");
	ignores(3);
	passes(9700 * MSEC);
	says(3, "LOCK a");
	hears(3, "ERR KIND *");
	says(2, "LOCK a");
	hears(2, "ERR KIND *");
	says(3, "ACQUIRE a limit=2");
	hears(3, "ERR LIMIT limit=3 *");
	says(2, "ACQUIRE a limit=4");
	hears(2, "ERR LIMIT limit=3 *");
	passes(600 * MSEC);
	says(2, "ACQUIRE a limit=4");
	hears(2, "OK *");
}

/* The daemon has another permit, which keeps the mark until it is given back. */
TEST(a_RELEASE_of_another_permit_does_not_end_the_time_in_which_a_client_that_is_gone_may_believe)
{
	two_daemons(3);
	session_opens_from_afar(1, 0);
	says(3, "ACQUIRE a limit=3");
	hears(3, "OK *");
	says(1, "ACQUIRE a limit=3");
	hears(1, "OK *");
	goes(1, GONE_RESET);
	says(3, "RELEASE a");
	hears(3, "OK *");
	passes(100 * MSEC);
	says(2, "LOCK a");
	hears(2, "ERR KIND *");
	says(3, "ACQUIRE a limit=3");
	hears(3, "OK name=a permit=? *");
	says(3, "RELEASE a");
	hears(3, "OK *");
	passes(9500 * MSEC);
	says(2, "LOCK a");
	hears(2, "ERR KIND *");
	passes(800 * MSEC);
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(the_loss_of_a_slot_keeps_nobody_from_the_others)
{
	char slot[] = SLOT_PREFIX "a#0";

	cluster_begin(3);
	says(1, "ACQUIRE a limit=3");
	slot[sizeof(slot) - 2] = (char)('0' + number_in(hears(1, "OK *"), "permit"));
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, slot, "someone", 1000 * SEC);
	passes(4 * SEC);
	hears(1, "! LOST name=a permit=? fence=* reason=evicted");
	for (unsigned i = 0; i < 2; i++) {
		says(2, "ACQUIRE a limit=3");
		hears(2, "OK name=a permit=? *");
	}
}
