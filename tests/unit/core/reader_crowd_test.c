/* SPDX-License-Identifier: BSD-2-Clause */
/* So many readers hold a name together at one daemon, and more wait. */
#include "daemon/core/lock/claim.h"
#include "tests/fixture/timed_story.h"

static void begins(void)
{
	lone_service_init(&w);
	w.sent = keeps_last;
	w.hung_up = ends;
	w.conf.limits.locks = 2 * READERS_MOST;
	w.conf.limits.waiting = 1024;
	service_reload(w.service, &w.conf);
	lone_service_settle(&w);
	sessions_open(1, 3);
	for (unsigned i = 0; i < READERS_MOST; i++)
		says_number(1, "LOCK x mode=shared owner=o", i, "");
	ck_assert_ptr_nonnull(strstr(heard, "OK name=x "));
}

static void ends_well(void)
{
	lone_service_release(&w);
}

static bool was_told(const char *text)
{
	bool was = strstr(heard, text) != NULL;

	heard[0] = '\0';
	return was;
}

TEST(one_more_reader_is_told_BUSY_or_waits)
{
	begins();
	says(2, "LOCK x mode=shared");
	ck_assert(was_told("BUSY name=x "));
	says(2, "@a LOCK x mode=shared wait=1h");
	says(3, "@b LOCKALL x y mode=shared wait=1h");
	ck_assert(was_told(""));
	says(1, "CHECK x owner=o7");
	ck_assert(was_told("OK name=x "));
	says(1, "@u UNLOCK x owner=o7");
	ck_assert(was_told("@a OK name=x "));
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	ck_assert(was_told("@b OK n=2"));
	ends_well();
}

TEST(a_writer_before_them_goes_first)
{
	begins();
	says(2, "@w LOCK x wait=1h");
	says(3, "@r LOCK x mode=shared wait=1h");
	heard[0] = '\0';
	says(1, "@u UNLOCK x owner=o0");
	ck_assert(was_told("@u OK"));
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	ck_assert(was_told("@w OK name=x "));
	says(2, "@v UNLOCK x");
	lone_service_pass(&w, SEC);
	ck_assert(was_told("@r OK name=x "));
	ends_well();
}

static unsigned granted, busy;

static void counts_answers(void *context, uint64_t session, struct span bytes)
{
	(void)context;
	(void)session;
	granted += memmem(bytes.p, bytes.n, " OK name=x ", 11) != NULL;
	busy += memmem(bytes.p, bytes.n, " BUSY name=x ", 13) != NULL;
}

/* They are let in by and by, and nobody else has the name. */
TEST(readers_that_come_during_a_round_and_do_not_wait_come_in)
{
	const unsigned readers = 500;

	lone_service_init(&w);
	w.hung_up = ends;
	lone_service_settle(&w);
	sessions_open(1, readers);
	w.sent = counts_answers;
	granted = busy = 0;
	lone_service_slow(&w, true);
	for (unsigned i = 1; i <= readers; i++)
		says(i, "@r LOCK x mode=shared");
	while (!TAILQ_EMPTY(&w.held))
		lone_service_answer(&w);
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC / 10);
	ck_assert_uint_eq(granted, readers);
	ends_well();
}
