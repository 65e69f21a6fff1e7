/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/lock/move.def: the moves of a name, and that each is logged when somebody listens. */
#include "daemon/core/lock/lease.h"
#include "tests/fixture/held_lock.h"

#include <check.h>

static void moves_are_told(void)
{
	cluster_open(1);
	cluster.conf.log_moves = true;
	daemon_starts(0);
	passes(2 * SEC);
	session_opens(1, 0);
}

FIXTURE(.teardown = cluster_close)

TEST(each_move_is_a_line_of_the_log_at_debug)
{
	moves_are_told();
	says(1, "LOCK 'a b'");
	hears(1, "OK *");
	ck_assert(was_logged("contender name=\"a b\" was=idle now=acquiring why=request"));
	says(1, "LOCK 'a b'");
	hears(1, "OK *");
	says(1, "UNLOCK 'a b'");
	hears(1, "OK *");
	ck_assert(!was_logged("lease *"));
	says(1, "UNLOCK 'a b'");
	hears(1, "OK *");
	ck_assert(was_logged("lease name=\"a b\" was=held now=none why=unlocked"));
}

TEST(nothing_is_formatted_when_nobody_listens)
{
	held_after_lock(1, "LOCK a");
	ck_assert(!was_logged("contender *"));
}

/* Is there a way from one state to another over at most so many moves? */
static bool leads(const bool (*moves)[CAUSES_MAX], int n, int from, int to, int most)
{
	for (int next = 0; most > 0 && next < n; next++)
		for (int why = 0; why < CAUSE_N; why++)
			if (moves[from * n + next][why] && (next == to || leads(moves, n, next, to, most - 1)))
				return true;
	return false;
}

FIXTURE()

TEST(every_state_can_be_reached_from_IDLE_and_left_for_it)
{
	for (int i = 1; i < CONTENDER_N; i++) {
		ck_assert(leads(&contender_moves[0][0], CONTENDER_N, 0, i, 3));
		ck_assert(leads(&contender_moves[0][0], CONTENDER_N, i, 0, 3));
	}
	for (int i = 1; i < LEASE_N; i++) {
		ck_assert(leads(&lease_moves[0][0], LEASE_N, 0, i, 3));
		ck_assert(leads(&lease_moves[0][0], LEASE_N, i, 0, 3));
	}
}
