/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/origin.c, rate.c, resume.c, watch.c: one peer leaves to the others their part of what all share. */
#include "daemon/core/event/origin.h"
#include "tests/fixture/resumable.h"

#include <check.h>
#include <fnmatch.h>
#include <string.h>

#define NAMES_OF_ONE  5  /* of three bytes each, so many are a quarter */
#define REFUSED_ONE   "ERR LIMIT the names that clients of one peer hold or wait for may take at most 1015 bytes at a store (limits.stored): UNLOCK some"
#define REFUSED_ALL   "ERR LIMIT the names that all clients hold or wait for may take at most 4060 bytes at a store (limits.stored): UNLOCK some"
#define REFUSED_LEFT  "ERR LIMIT the names that clients of one peer keep or have left with a delay may take at most 1015 bytes at a store *"
#define OTHER         30 /* the session of another peer */
#define ROOT          32

static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};
static const struct peer root = {.is_unix = true, .is_local = true, .uid = 0, .pid = 8, .address = "unix"};

static void begins(int64_t max_delay_us)
{
	cluster_open(1);
	cluster.conf.limits.stored = 4 * NAMES_OF_ONE * (3 + NAME_BYTES);
	cluster.conf.max_delay_us = max_delay_us;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(OTHER, 0, &other);
	session_opens_from(ROOT, 0, &root);
}

/* The names 00k, 01k, …: k at the end tells the sessions apart. Returns how many were granted until one was refused so. */
static unsigned locks_until(unsigned k, const char *refusal)
{
	const char *told = "OK";
	unsigned n;

	for (n = 0; told[0] == 'O' && n < 50; n++) {
		says(k, "LOCK %02u%u", n, k % 10);
		told = next_line(k);
	}
	ck_assert_int_eq(fnmatch(refusal, told, 0), 0);
	return n - 1;
}

FIXTURE(.teardown = cluster_close, .seconds = 60)

TEST(names_of_a_peer_take_a_quarter_and_those_of_all_the_whole)
{
	begins(0);
	ck_assert_uint_eq(locks_until(1, REFUSED_ONE), NAMES_OF_ONE);
	says(2, "LOCK abc");
	hears(2, REFUSED_ONE);
	says(2, "LOCK abc wait=5s");
	hears(2, REFUSED_ONE);
	says(2, "LOCKALL abc def");
	hears(2, REFUSED_ONE);
	says(2, "LOCKANY abc def");
	hears(2, REFUSED_ONE);
	says(2, "ACQUIRE abc limit=2");
	hears(2, REFUSED_ONE);
	says(OTHER, "LOCK abc");
	hears(OTHER, "OK *");
	ck_assert_uint_eq(locks_until(ROOT, REFUSED_ALL), 3 * NAMES_OF_ONE - 1);
	says(OTHER, "LOCK def");
	hears(OTHER, REFUSED_ALL);
}

/* How many DEFERs of session k are at the store when one more is refused so. */
static unsigned defers_until(unsigned k, const char *refusal)
{
	char payload[1001];
	const char *told = NULL;
	unsigned n;

	memset(payload, 'x', sizeof(payload) - 1);
	payload[sizeof(payload) - 1] = '\0';
	for (n = 0; !told && n < 200; n++) {
		says(k, "@t%u DEFER q %s", n, payload);
		told = next_line(k);
	}
	ck_assert_ptr_nonnull(told);
	ck_assert_msg(strstr(told, refusal), "%u: %s", n, told);
	return n - 1;
}

TEST(jobs_of_a_peer_on_their_way_to_a_store_leave_room_for_those_of_others)
{
	cluster_open(1);
	cluster.conf.limits.output = 1000;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(OTHER, 0, &other);
	session_opens_from(ROOT, 0, &root);
	cluster.node[0].mood = MOOD_SILENT;
	ck_assert_uint_eq(defers_until(1, "ERR LIMIT the sessions of one peer may have at most 16000 bytes"), 14);
	ck_assert_uint_eq(defers_until(2, "ERR LIMIT the sessions of one peer may have at most 16000 bytes"), 0);
	ck_assert_uint_eq(defers_until(OTHER, "ERR LIMIT the sessions of one peer may have at most 16000 bytes"), 14);
	ck_assert_uint_gt(defers_until(ROOT, "ERR LIMIT all sessions together may have at most 64000 bytes"), 20);
	cluster.node[0].mood = MOOD_WELL;
	passes(10 * SEC);
	ignores(1);
	says(1, "DEFER q x");
	hears(1, "OK *");
}

/* A DROP takes no bytes. Its answer is still on the way when the last session of its peer is gone. */
TEST(a_DROP_that_is_on_its_way_to_a_store_outlives_its_peer)
{
	begins(0);
	cluster.node[0].mood = MOOD_SILENT;
	says(OTHER, "DROP q a");
	passes(MSEC);
	goes(OTHER, GONE_HANGUP);
	cluster.node[0].mood = MOOD_WELL;
	passes(10 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
}

/* A mark and a slot are names as well. */
TEST(names_of_permits_count_again_after_a_crash)
{
	struct secret s;
	unsigned before, after;

	begins(0);
	cluster.conf.limits.stored *= 4;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	s = says_hello(1, "grace=1m");
	says(1, "ACQUIRE abc limit=2");
	hears(1, "OK *");
	before = locks_until(2, "ERR LIMIT *");
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s);
	ignores(3);
	after = locks_until(4, "ERR LIMIT *");
	ck_assert_uint_eq(before, after);
}

TEST(a_name_that_is_given_back_makes_room)
{
	begins(0);
	locks_until(1, REFUSED_ONE);
	says(1, "LOCK 001");
	hears(1, "OK * count=2");
	says(1, "UNLOCK 011");
	hears(1, "OK *");
	says(1, "LOCK 771");
	hears(1, "OK *");
	goes(1, GONE_HANGUP);
	passes(SEC);
	ck_assert_uint_eq(locks_until(2, REFUSED_ONE), NAMES_OF_ONE);
}

TEST(a_request_that_waits_takes_room)
{
	begins(0);
	says(OTHER, "LOCK abc");
	hears(OTHER, "OK *");
	for (unsigned i = 0; i < NAMES_OF_ONE; i++)
		says(1, "@%u ACQUIRE s%u wait=1h limit=1", i, i);
	ignores(1);
	says(1, "LOCK xyz");
	hears(1, REFUSED_ONE);
}

/* The stores keep them for as long as the client may rely on them. */
TEST(names_of_a_client_that_went_unsurely_count_until_their_leases_are_over)
{
	begins(0);
	locks_until(1, REFUSED_ONE);
	goes(1, GONE_KEEPALIVE);
	says(2, "LOCK abc");
	hears(2, REFUSED_ONE);
	passes(11 * SEC);
	says(2, "LOCK abc");
	hears(2, "OK *");
}

TEST(names_that_are_left_with_a_delay_count_until_it_is_over)
{
	begins(60 * SEC);
	for (unsigned i = 0; i < NAMES_OF_ONE; i++) {
		says(1 + i, "LOCK ab%u delay=30s", i);
		hears(1 + i, "OK *");
		goes(1 + i, GONE_HANGUP);
	}
	says(20, "LOCK abc delay=30s");
	hears(20, REFUSED_LEFT);
	says(20, "LOCKALL abc abd delay=30s");
	hears(20, REFUSED_LEFT);
	says(20, "ACQUIRE pool limit=1"); /* permits are never left */
	hears(20, "OK *");
	says(20, "LOCK abc");
	hears(20, "OK *");
	says(ROOT, "LOCK abd delay=30s");
	hears(ROOT, "OK *");
	passes(34 * SEC);
	says(20, "LOCK abe delay=30s");
	hears(20, "OK *");
}

/* What a reader has used counts for those who still hold it. */
TEST(a_name_counts_for_the_reader_that_has_it_longest)
{
	begins(0);
	says(OTHER, "LOCK abc mode=shared");
	hears(OTHER, "OK *");
	says(1, "LOCK abc mode=shared");
	hears(1, "OK *");
	ck_assert_uint_eq(locks_until(2, REFUSED_ONE), NAMES_OF_ONE);
	says(2, "UNLOCK 002");
	hears(2, "OK *");
	says(OTHER, "UNLOCK abc");
	hears(OTHER, "OK *");
	says(2, "LOCK 002");
	hears(2, REFUSED_ONE);
	ck_assert_uint_eq(locks_until(OTHER, REFUSED_ONE), NAMES_OF_ONE);
}

TEST(a_name_that_is_handed_on_counts_for_its_new_holder)
{
	begins(0);
	for (unsigned i = 0; i < NAMES_OF_ONE; i++) {
		says(OTHER, "LOCK ab%u", i);
		hears(OTHER, "OK *");
		says(1, "@%u LOCK ab%u wait=1h", i, i);
	}
	says(1, "LOCK abc");
	hears(1, "OK *");
	says(1, "UNLOCK abc");
	hears(1, "OK *");
	for (unsigned i = 0; i < NAMES_OF_ONE; i++) {
		says(OTHER, "UNLOCK ab%u", i);
		hears(OTHER, "OK *");
		hears(1, "@? OK *");
	}
	says(1, "LOCK abc");
	hears(1, REFUSED_ONE);
	ck_assert_uint_eq(locks_until(OTHER, REFUSED_ONE), NAMES_OF_ONE);
}

LOOP_TEST(what_a_resumed_session_has_still_counts, 2)
{
	struct secret secret;

	begins(0);
	secret = says_hello(1, "grace=20s");
	locks_until(1, REFUSED_ONE);
	goes(1, GONE_HANGUP);
	if (_i == 1) {
		daemon_returns(0);
		passes(SEC);
	}
	resumes(2, &secret);
	passes(SEC);
	ignores(2);
	says(2, "LOCK abc");
	hears(2, REFUSED_ONE);
	says(2, "UNLOCK 001");
	hears(2, "OK *");
	says(2, "LOCK abc");
	hears(2, "OK *");
}

static unsigned drops_with_grace(unsigned k, const struct peer *peer, const char *lock)
{
	int64_t before = figure(0, METRIC_SESSIONS_DETACHED);

	session_opens_from(k, 0, peer);
	says_hello(k, "grace=20s");
	if (lock) {
		says(k, "LOCK %s", lock);
		hears(k, "OK *");
	}
	goes(k, GONE_HANGUP);
	return (unsigned)(figure(0, METRIC_SESSIONS_DETACHED) - before);
}

TEST(sessions_of_one_peer_have_half_of_the_places_without_a_connection)
{
	cluster_open(1);
	cluster.conf.limits.detached = 4;
	daemon_starts(0);
	passes(SEC);
	ck_assert_uint_eq(drops_with_grace(1, &other, "a"), 1);
	ck_assert_uint_eq(drops_with_grace(2, &other, NULL), 1);
	ck_assert_uint_eq(drops_with_grace(3, &other, NULL), 0);
	ck_assert_uint_eq(drops_with_grace(4, &other, "b"), 0); /* in place of the second */
	ck_assert_uint_eq(drops_with_grace(5, &other, "c"), 0);
	passes(12 * SEC);
	says(20, "LOCK b");
	hears(20, "BUSY *");
	says(20, "LOCK c");
	hears(20, "OK *");
	ck_assert_uint_eq(drops_with_grace(6, &root, NULL), 1);
	ck_assert_uint_eq(drops_with_grace(7, &root, NULL), 1);
	ck_assert_uint_eq(drops_with_grace(8, &root, NULL), 0);
}

static unsigned prefixes_of(const struct peer *peer, unsigned from, unsigned sessions, const char *refusal)
{
	unsigned n = 0;

	for (unsigned k = from; k < from + sessions; k++) {
		session_opens_from(k, 0, peer);
		for (unsigned i = 0; i < 64; i++) {
			const char *told;

			says(k, "WATCH %u-%u", k, i);
			told = next_line(k);
			n += told[0] == 'O';
			if (told[0] != 'O')
				ck_assert_str_eq(told, refusal);
		}
	}
	return n;
}

TEST(sessions_of_one_peer_have_half_of_the_prefixes)
{
	cluster_begin(1);
	ck_assert_uint_eq(prefixes_of(&other, 1, 5, "ERR LIMIT the sessions of one peer may watch at most 256 prefixes"), 256);
	session_opens(40, 0);
	says(40, "WATCH a");
	hears(40, "OK prefixes=1");
	goes(1, GONE_HANGUP);
	says(5, "WATCH a");
	hears(5, "OK prefixes=1");
}

static unsigned queues_of(const struct peer *peer, unsigned from, unsigned sessions, const char *refusal)
{
	unsigned n = 0;

	for (unsigned k = from; k < from + sessions; k++) {
		session_opens_from(k, 0, peer);
		for (unsigned i = 0; i < 600; i++) {
			const char *told;

			says(k, "@%u TAKE %u-%u wait=1h", i, k, i);
			told = next_line(k);
			n += !told;
			if (told)
				ck_assert_msg(strstr(told, refusal), "%u: %s", n, told);
		}
	}
	return n;
}

static void many_may_wait(void)
{
	cluster_open(1);
	cluster.conf.limits.waiting = 1024;
	daemon_starts(0);
	passes(SEC);
}

/* Each is a key at its home. */
TEST(sessions_of_one_peer_wait_for_the_jobs_of_so_many_queues)
{
	many_may_wait();
	ck_assert_uint_eq(queues_of(&other, 1, 2, " ERR LIMIT the sessions of one peer may wait for the jobs of at most 1024 queues"), 1024);
	ck_assert_uint_eq(queues_of(&root, 3, 6, " ERR LIMIT all sessions together may wait for the jobs of at most 4096 queues"), 3072);
	says(2, "@again TAKE 1-0 wait=1h");
	ck_assert_ptr_null(next_line(2)); /* it is no further queue */
	goes(1, GONE_HANGUP);
	says(2, "@t TAKE another wait=1h");
	ck_assert_ptr_null(next_line(2));
	session_opens(40, 0);
	says(40, "TAKE third wait=1h");
	ck_assert_ptr_null(next_line(40));
}

TEST(so_many_TAKEs_wait_for_the_jobs_of_a_queue)
{
	cluster_open(1);
	cluster.conf.limits.waiting = 8192;
	cluster.conf.limits.locks = 9000;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(40, 0, &root);
	for (unsigned i = 0; i < 8192; i++)
		says(40, "@%u TAKE q wait=1h", i);
	ck_assert_ptr_null(next_line(40));
	session_opens(41, 0);
	says(41, "@t TAKE q wait=1h");
	hears(41, "@t ERR LIMIT at most 8192 TAKEs may wait for the jobs of one queue");
	says(40, "CANCEL @7");
	ignores(40);
	says(41, "@t TAKE q wait=1h");
	hears_nothing(41);
}

TEST(half_of_the_TAKEs_that_wait_for_the_jobs_of_a_queue_are_of_one_peer)
{
	cluster_open(1);
	cluster.conf.limits.waiting = 8192;
	cluster.conf.limits.locks = 9000;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(39, 0, &other);
	session_opens_from(40, 0, &other);
	for (unsigned i = 0; i < 4096; i++)
		says(39 + i % 2, "@%u TAKE q wait=1h", i);
	says(40, "@t TAKE q wait=1h");
	hears(40, "@t ERR LIMIT at most 4096 TAKEs of the sessions of one peer may wait for the jobs of one queue");
	says(40, "@t TAKE q");
	hears(40, "@t ERR LIMIT *");
	says(40, "@u TAKE another wait=1h");
	hears_nothing(40);
	session_opens(41, 0);
	says(41, "@t TAKE q wait=1h");
	hears_nothing(41);
	goes(39, GONE_HANGUP);
	for (unsigned i = 0; i < 2048; i++)
		says(40, "@a%u TAKE q wait=1h", i);
	hears_nothing(40);
	says(40, "@t TAKE q wait=1h");
	hears(40, "@t ERR LIMIT *");
}

/* What was another's first counts for those who still wait. */
TEST(a_queue_counts_for_those_who_wait)
{
	many_may_wait();
	session_opens(40, 0);
	says(40, "@1 TAKE 1-0 wait=1h");
	ck_assert_ptr_null(next_line(40));
	ck_assert_uint_eq(queues_of(&other, 1, 2, " ERR LIMIT the sessions of one peer "), 1025);
	goes(40, GONE_HANGUP);
	says(1, "@x CANCEL @1");
	hears(1, "@x OK");
	hears(1, "@1 ERR CANCELLED *");
	says(1, "@y TAKE another wait=1h");
	hears(1, "@y ERR LIMIT *");
}

TEST(requests_under_way_have_a_bound_for_a_peer_and_for_all)
{
	struct origin *o[5];
	struct origins all = {0};

	origins_init(&all, (const uint64_t[2]){1, 2});
	for (unsigned i = 0; i < 5; i++) {
		o[i] = origin_join(&all, (struct span){&"abcde"[i], 1});
		for (unsigned n = 0; i < 4 && n < CROWD_OF_PEER; n++) {
			ck_assert_uint_eq(origin_asks_enough(o[i], 1), 0);
			origin_asks(o[i]);
		}
	}
	ck_assert_uint_eq(origin_asks_enough(o[4], 1), CROWD_OF_ALL);
	origin_asked(o[0]);
	ck_assert_uint_eq(origin_asks_enough(o[4], 1), 0);
	ck_assert_uint_eq(origin_asks_enough(o[1], 1), CROWD_OF_PEER);
	o[1]->is_owner = true;
	ck_assert_uint_eq(origin_asks_enough(o[1], 1), 0);
	ck_assert_uint_eq(origin_asks_enough(NULL, 1), 0);
	for (unsigned i = 0; i < 5; i++) {
		while (o[i]->under_way > 0)
			origin_asked(o[i]);
		origin_leave(o[i]);
	}
	ck_assert_uint_eq(all.by_name.count, 0);
	origins_release(&all);
}
