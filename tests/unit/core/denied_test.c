/* SPDX-License-Identifier: BSD-2-Clause */
/* What the rules deny, where no request names it: the lock of a job, the names of a deadlock, the sessions of others. */
#include "tests/fixture/ruled.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void begins(void)
{
	cluster_begin(1);
	peers_open(usual, USUAL_RULES);
}

static void defers(const char *id, const char *lock)
{
	says(OPERATOR, "DEFER jobs/q x id=%s%s%s", id, lock ? " lock=" : "", lock ? lock : "");
	hears(OPERATOR, "OK queue=jobs/q job=* due_ms=0");
}

static void holds(unsigned k, const char *name)
{
	says(k, "LOCK %s", name);
	hears(k, "OK name=*");
}

/* --- the lock of a job --- */

FIXTURE(.teardown = ruled_ends)

TEST(a_job_whose_lock_one_may_not_have_is_left_out)
{
	begins();
	defers("a", "secret/1");
	says(WORKER, "TAKE jobs/q");
	hears(WORKER, "ERR DENIED what is due in this queue needs the right 'lock' for its lock as well, which no rule gives to this peer");
	defers("b", NULL);
	says(WORKER, "TAKE jobs/q");
	hears(WORKER, "OK queue=jobs/q job=b *");
	says(OPERATOR, "TAKE jobs/q");
	hears(OPERATOR, "OK queue=jobs/q job=a attempt=1 * name=secret/1 fence=* payload=x");
	says(WORKER, "TAKE jobs/q");
	hears(WORKER, "BUSY queue=jobs/q *");
}

TEST(the_rule_that_denies_the_lock_of_a_job_is_told)
{
	static const struct rule two[] = {{7, 33, -1, NULL, NULL, "web/secret", RIGHT_LOOK},
	                                  {8, 33, -1, NULL, NULL, NULL, RIGHT_LOCK},
	                                  {9, -1, OPS, NULL, NULL, NULL, RIGHT_LOCK}};

	cluster_begin(1);
	peers_open(two, 3);
	defers("a", "web/secret");
	says(WEB, "TAKE jobs/q");
	hears(WEB, "ERR DENIED * which the rule in line 7 does not give");
}

TEST(a_job_goes_to_the_next_that_waits_and_may_have_its_lock)
{
	begins();
	says(WORKER, "TAKE jobs/q wait=10s");
	says(OPERATOR, "@t TAKE jobs/q wait=10s");
	says(OPERATOR, "DEFER jobs/q x id=a lock=secret/1");
	hears(OPERATOR, "OK *");
	hears(OPERATOR, "@t OK queue=jobs/q job=a * name=secret/1 *");
	hears_nothing(WORKER);
	passes(10 * SEC);
	hears(WORKER, "TIMEOUT queue=jobs/q *"); /* there is nothing any more that it may not have */
}

TEST(a_job_also_goes_to_a_waiter_that_asks_for_another_lease)
{
	begins();
	says(WORKER, "TAKE jobs/q wait=10s");
	says(OPERATOR, "@t TAKE jobs/q wait=10s ttl=5s");
	says(OPERATOR, "DEFER jobs/q x id=a lock=secret/1");
	hears(OPERATOR, "OK *");
	passes(2 * SEC);
	hears(OPERATOR, "@t OK queue=jobs/q job=a * ttl_ms=5000 name=secret/1 *");
	hears_nothing(WORKER);
}

TEST(a_request_with_another_lease_gets_the_job_at_once)
{
	begins();
	says(WORKER, "TAKE jobs/q wait=10s");
	says(CERTIFIED, "TAKE jobs/q wait=10s ttl=6s");
	defers("a", "secret/1");
	says(OPERATOR, "TAKE jobs/q ttl=5s");
	hears(OPERATOR, "OK queue=jobs/q job=a * ttl_ms=5000 name=secret/1 *");
	says(OPERATOR, "TAKE jobs/q ttl=5s");
	hears(OPERATOR, "BUSY *");
	hears_nothing(WORKER);
}

TEST(a_session_that_waits_for_a_job_which_it_may_not_have_is_told_at_the_end)
{
	begins();
	says(WORKER, "TAKE jobs/q wait=3s");
	defers("a", "secret/1");
	hears_nothing(WORKER);
	passes(3 * SEC + 10 * MSEC);
	hears(WORKER, "ERR DENIED what is due *");
}

TEST(many_that_one_may_not_have_hide_none_that_one_may)
{
	char id[8], lock[32];

	begins();
	for (unsigned i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "j%03u", i);
		snprintf(lock, sizeof(lock), "secret/%u", i);
		defers(id, lock);
	}
	defers("k", NULL);
	says(WORKER, "TAKE jobs/q wait=10s");
	passes(5 * SEC);
	hears(WORKER, "OK queue=jobs/q job=k *");
}

TEST(rules_that_are_read_again_hold_for_a_take_that_waits)
{
	static const struct rule later[] = {{21, -1, -1, "worker", NULL, NULL, RIGHT_LOCK}};

	begins();
	says(WORKER, "TAKE jobs/q wait=10s");
	defers("a", "secret/1");
	hears_nothing(WORKER);
	rules_are(later, 1);
	passes(2 * SEC);
	hears(WORKER, "OK queue=jobs/q job=a *");
}

/* --- deadlocks --- */

/* Session 20 has web/2 and waits for secret/1; session 21 has that and waits for web/1. */
static void a_chain_ends_at(const char *last)
{
	opens(20, 1001, OPS, false);
	opens(21, 1002, OPS, false);
	holds(20, "web/2");
	holds(21, "secret/1");
	says(20, "LOCK secret/1 wait=1m");
	says(21, "LOCK %s wait=1m", last);
}

TEST(a_cycle_shows_no_name_that_one_may_not_look_at)
{
	begins();
	holds(WEB, "web/1");
	a_chain_ends_at("web/1");
	says(WEB, "LOCK web/2 wait=1m");
	ck_assert_str_eq(hears(WEB, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=web/2<-...<-web/1<-web/2");
	says(WEB, "LOCKALL web/2 web/3 wait=1m");
	hears(WEB, "ERR DEADLOCK cycle=web/2<-...<-web/1<-web/2");
}

TEST(a_cycle_with_a_permit_shows_no_name_that_one_may_not_look_at)
{
	begins();
	says(WEB, "ACQUIRE web/1 limit=1");
	passes(SEC / 10);
	hears(WEB, "OK name=web/1 *");
	opens(20, 1001, OPS, false);
	opens(21, 1002, OPS, false);
	holds(20, "web/2");
	holds(21, "secret/1");
	says(20, "LOCK secret/1 wait=1m");
	says(21, "ACQUIRE web/1 limit=1 wait=1m");
	passes(SEC / 10);
	says(WEB, "LOCK web/2 wait=1m");
	passes(FOUND_US);
	ck_assert_str_eq(hears(WEB, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=web/2@h0<-...@h0<-web/1@h0<-web/2@h0");
}

TEST(a_cycle_shows_all_to_who_may_look_at_all)
{
	begins();
	holds(OPERATOR, "web/1");
	a_chain_ends_at("web/1");
	says(OPERATOR, "LOCK web/2 wait=1m");
	hears(OPERATOR, "ERR DEADLOCK cycle=web/2<-secret/1<-web/1<-web/2");
}

TEST(a_cycle_shows_the_names_that_a_peer_has_or_asks_for)
{
	begins();
	holds(WORKER, "jobs/1");
	holds(OPERATOR, "jobs/2");
	says(OPERATOR, "LOCK jobs/1 wait=1m");
	says(WORKER, "LOCK jobs/2 wait=1m");
	hears(WORKER, "ERR DEADLOCK cycle=jobs/2<-jobs/1<-jobs/2");
}

TEST(a_cycle_over_several_daemons_shows_no_name_that_one_may_not_look_at)
{
	two_daemons(3);
	peers_open(usual, USUAL_RULES);
	session_opens(20, 1);
	holds(WEB, "web/1");
	holds(2, "web/2");
	holds(20, "secret/1");
	says(2, "LOCK secret/1 wait=100s");
	passes(SEC / 10);
	says(20, "LOCK web/1 wait=100s");
	passes(SEC / 10);
	says(WEB, "LOCK web/2 wait=100s");
	passes(10 * SEC);
	ck_assert_str_eq(hears(WEB, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=web/2@h1<-...@h1<-web/1@h0<-web/2@h1");
}

/* --- sessions --- */

TEST(a_session_is_listed_with_its_user)
{
	begins();
	says(WORKER, "LIST sessions");
	hears(WORKER, "\\* session=* peer=10.0.0.7:1 user=worker age_ms=*");
	hears(WORKER, "OK n=1 more=0");
}

TEST(the_audit_log_tells_the_user_and_the_certificate)
{
	cluster_open(1);
	cluster.conf.audit = true;
	daemon_starts(0);
	passes(QUARANTINE_US + SEC);
	peers_open(&(const struct rule){7, -1, -1, NULL, NULL, NULL, RIGHT_LOCK}, 1);
	holds(CERTIFIED, "a");
	ck_assert_ptr_nonnull(strstr(cluster.daemon[0].audited, ",\"cert\":\"CN=db3\",\"address\":\"10.0.0.8:1\"}"));
	holds(WORKER, "b");
	ck_assert_ptr_nonnull(strstr(cluster.daemon[0].audited, ",\"user\":\"worker\",\"address\":\"10.0.0.7:1\"}"));
	/* U+009B, which some terminals obey, and what is no UTF-8. */
	holds(WORKER, "\"\\xc3\\xa9\\xc2\\x9b\\xed\\xa0\\x80\\x7f\\\"\"");
	ck_assert_ptr_nonnull(strstr(cluster.daemon[0].audited, ",\"name\":\"\xc3\xa9\\udcc2\\udc9b\\udced\\udca0\\udc80\\u007f\\\"\","));
}

TEST(a_peer_of_the_web_may_look_by_its_groups)
{
	const uint32_t groups[] = {1, OPS};
	struct peer peer = {.is_unix = true, .uid = 5};
	const struct service *s;

	begins();
	s = cluster.daemon[0].service;
	ck_assert(!service_lets_look(s, &peer, false) && !service_lets_look(s, &peer, true));
	peer.groups = groups;
	peer.groups_n = 1;
	ck_assert(!service_lets_look(s, &peer, true));
	peer.groups_n = 2;
	ck_assert(service_lets_look(s, &peer, false) && service_lets_look(s, &peer, true));
	peer.is_unix = false;
	ck_assert(!service_lets_look(s, &peer, true));
}
