/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/rights/access.c and client.c: what each request needs, which rule decides, and what lists and pushes show. */
#include "daemon/core/reply/history.h"
#include "daemon/core/rights/rights.h"
#include "proto/proto.h"
#include "tests/fixture/ruled.h"

#include <check.h>
#include <stdio.h>

static void begins_with(const struct rule *rule, size_t count)
{
	cluster_begin(1);
	peers_open(rule, count);
}

static void begins(void)
{
	begins_with(usual, USUAL_RULES);
}

/* --- each request --- */

/* A line of each request. This table is complete, or the test below fails. */
static const char *const line_of[VERB_N] = {
	[VERB_HELLO] = "HELLO 1",
	[VERB_RESUME] = "RESUME 1 x",
	[VERB_AUTH] = "AUTH ann secret",
	[VERB_PING] = "PING",
	[VERB_HELP] = "HELP PING",
	[VERB_QUIT] = "QUIT",
	[VERB_LOCK] = "LOCK web/1",
	[VERB_UNLOCK] = "UNLOCK web/1",
	[VERB_EXTEND] = "EXTEND web/1",
	[VERB_CHECK] = "CHECK web/1",
	[VERB_LOCKALL] = "LOCKALL web/1 web/2",
	[VERB_LOCKANY] = "LOCKANY web/1 web/2",
	[VERB_RATE] = "RATE web/1 limit=1 per=1s",
	[VERB_ACQUIRE] = "ACQUIRE web/1 limit=1",
	[VERB_RELEASE] = "RELEASE web/1",
	[VERB_DEFER] = "DEFER web/1 x",
	[VERB_TAKE] = "TAKE web/1",
	[VERB_DONE] = "DONE 1",
	[VERB_RETRY] = "RETRY 1 queue=web/1",
	[VERB_DROP] = "DROP web/1 1",
	[VERB_CANCEL] = "CANCEL @x",
	[VERB_SHOW] = "SHOW web/1",
	[VERB_LIST] = "LIST",
	[VERB_COMPLETE] = "COMPLETE web/",
	[VERB_RECENT] = "RECENT",
	[VERB_WATCH] = "WATCH web/",
	[VERB_UNWATCH] = "UNWATCH web/",
	[VERB_SUBSCRIBE] = "SUBSCRIBE",
	[VERB_UNSUBSCRIBE] = "UNSUBSCRIBE",
	[VERB_BREAK] = "BREAK web/1",
	[VERB_KILL] = "KILL session=1",
	[VERB_DRAIN] = "DRAIN",
	[VERB_STATS] = "STATS",
};

static bool is_always_allowed(int verb)
{
	return verb == VERB_HELLO || verb == VERB_AUTH || verb == VERB_PING || verb == VERB_HELP || verb == VERB_QUIT;
}

FIXTURE(.teardown = ruled_ends)

LOOP_TEST(each_request_has_a_decision_and_a_line_here, VERB_N)
{
	ck_assert_msg(access_is_decided((enum verb)_i), "%s: daemon/core/rights/access.c says nothing of what it needs", command_table[_i].word);
	ck_assert_msg(line_of[_i], "%s: this test has no line for it", command_table[_i].word);
}

LOOP_TEST(whom_no_rule_matches_is_denied_all_but_five_requests, VERB_N)
{
	begins();
	says(NOBODY, "%s", line_of[_i]);
	if (_i == VERB_AUTH)
		verification_ends(0, true);
	if (_i == VERB_HELP)
		for (unsigned i = 0; i < 2; i++)
			hears(NOBODY, "\\* *");
	hears(NOBODY, is_always_allowed(_i) ? "OK*" : "ERR DENIED * needs the right '*', which no rule gives to this peer here");
	if (_i != VERB_QUIT)
		hears_nothing(NOBODY);
}

LOOP_TEST(root_has_no_right_that_no_rule_gives, VERB_N)
{
	begins();
	says(ROOT, "%s", line_of[_i]);
	if (_i == VERB_AUTH)
		verification_ends(0, true);
	if (_i == VERB_HELP)
		for (unsigned i = 0; i < 2; i++)
			hears(ROOT, "\\* *");
	hears(ROOT, is_always_allowed(_i) ? "OK*" : "ERR DENIED *");
}

/* --- which rule decides --- */

static void denied(unsigned k, const char *request, const char *text)
{
	says(k, "%s", request);
	hears(k, text);
}

TEST(the_first_rule_whose_conditions_all_hold_decides)
{
	begins();
	says(WEB, "LOCK web/1");
	hears(WEB, "OK name=web/1 *");
	denied(WEB, "LOCK web/secret", "ERR DENIED LOCK needs the right 'lock', which the rule in line 10 does not give");
	denied(WEB, "LOCK jobs/1", "ERR DENIED LOCK needs the right 'lock', which no rule gives to this peer here");
	denied(WEB, "BREAK web/1", "ERR DENIED BREAK needs the right 'admin', which the rule in line 11 does not give");
	denied(WEB, "STATS", "ERR DENIED STATS needs the right 'look', which no rule gives *"); /* both its rules are about names */
	says(WORKER, "LOCK jobs/1");
	hears(WORKER, "OK name=jobs/1 *");
	denied(WORKER, "SHOW jobs/1", "ERR DENIED SHOW needs the right 'look', which the rule in line 13 does not give");
	says(CERTIFIED, "SHOW jobs/1");
	hears(CERTIFIED, "\\* role=holder *");
	hears(CERTIFIED, "OK n=1");
	denied(CERTIFIED, "LOCK jobs/2", "ERR DENIED LOCK needs the right 'lock', which the rule in line 14 does not give");
	says(OPERATOR, "BREAK jobs/1");
	hears(OPERATOR, "OK name=jobs/1 *");
}

TEST(no_rule_behind_one_that_is_about_all_names_gives_a_right)
{
	static const struct rule two[] = {{7, 33, -1, NULL, NULL, NULL, RIGHT_LOCK}, {8, 33, -1, NULL, NULL, "web/*", RIGHT_LOOK}};

	begins_with(two, 2);
	denied(WEB, "WATCH", "ERR DENIED *");
	denied(WEB, "SHOW web/1", "ERR DENIED * line 7 *");
}

TEST(each_name_of_a_request_needs_the_right)
{
	begins();
	denied(WEB, "LOCKALL web/1 web/secret", "ERR DENIED LOCKALL *line 10*");
	denied(WEB, "LOCKANY web/1 jobs/1", "ERR DENIED LOCKANY *");
	denied(WEB, "DEFER web/q x lock=jobs/1", "ERR DENIED DEFER *");
	denied(WEB, "DEFER jobs/q x lock=web/1", "ERR DENIED DEFER *");
	denied(WEB, "RETRY 1 queue=jobs/q", "ERR DENIED RETRY *");
	denied(WEB, "DONE 1 queue=jobs/q", "ERR DENIED DONE *");
	denied(WEB, "LIST jobs prefix=jobs/q", "ERR DENIED LIST *");
	says(WEB, "LOCKALL web/1 web/2");
	hears(WEB, "\\* name=web/1 *");
	hears(WEB, "\\* name=web/2 *");
	hears(WEB, "OK n=2");
}

TEST(a_job_shows_that_it_has_a_lock_and_its_name_to_those_who_may_look)
{
	static const struct rule two[] = {{7, 33, -1, NULL, NULL, "web/*", RIGHT_LOOK}, {8, 0, -1, NULL, NULL, NULL, RIGHT_LOOK | RIGHT_LOCK}};

	begins_with(two, 2);
	says(ROOT, "DEFER web/q x id=a lock=web/1");
	hears(ROOT, "OK *");
	says(ROOT, "DEFER web/q x id=b lock=jobs/1");
	hears(ROOT, "OK *");
	says(WEB, "LIST jobs prefix=web/q");
	hears(WEB, "\\* queue=web/q job=a state=due * name=web/1 payload=x");
	hears(WEB, "\\* queue=web/q job=b state=due * name=\"\" payload=x");
	hears(WEB, "OK n=2");
}

TEST(what_is_there_is_denied_like_what_is_not)
{
	const char *there, *not_there;
	char first[200];

	begins();
	says(OPERATOR, "LOCK jobs/1");
	hears(OPERATOR, "OK *");
	says(WEB, "SHOW jobs/1");
	there = hears(WEB, "ERR DENIED *");
	snprintf(first, sizeof(first), "%s", there);
	says(WEB, "SHOW jobs/2");
	not_there = hears(WEB, "ERR DENIED *");
	ck_assert_str_eq(first, not_there);
}

#define PATTERNS 28

LOOP_TEST(a_pattern_has_stars_for_any_bytes, PATTERNS)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} row[] = {
		{"a", "a", true},        {"a", "ab", false},         {"ab", "a", false},          {"*", "a/b", true},          {"a*", "a", true},
		{"a*", "ba", false},     {"*a", "a", true},          {"*a", "aba", true},         {"*a", "ab", false},         {"a*b*c", "axxbyyc", true},
		{"a*b*c", "abc", true},  {"a*b*c", "acb", false},    {"*ab", "aab", true},        {"a*ab", "aab", true},       {"a*ab", "ab", false},
		{"**a**", "xay", true},  {"a?", "ab", false},        {"[a]", "a", false},         {"web/*", "web/a/b", true},  {"web/*", "web", false},
		{"*x*y*", "ayxy", true}, {"*aaab", "aaaaaab", true}, {"a*a*a*b", "aaaaaa", false}, {"a*a", "a", false},        {"*ab*b", "ab", false},
		{"*ab*b", "abb", true},  {"**", "a", true},          {"*a**b*", "ab", true}};

	begins_with(&(const struct rule){7, 33, -1, NULL, NULL, row[_i].pattern, RIGHT_LOCK}, 1);
	says(WEB, "CHECK %s", row[_i].name);
	hears(WEB, row[_i].matches ? "ERR NOTHELD *" : "ERR DENIED *");
}

TEST(rules_that_are_read_again_hold_for_sessions_that_are_there)
{
	static const struct rule later[] = {{21, 33, -1, NULL, NULL, "jobs/*", RIGHT_LOCK}};

	begins();
	says(WEB, "LOCK web/1");
	hears(WEB, "OK *");
	rules_are(later, 1);
	denied(WEB, "EXTEND web/1", "ERR DENIED *");
	says(WEB, "LOCK jobs/1");
	hears(WEB, "OK name=jobs/1 *");
}

TEST(a_uid_is_that_of_a_unix_peer_only)
{
	begins_with(&(const struct rule){7, 33, -1, NULL, NULL, NULL, RIGHT_LOCK}, 1);
	session_opens_from(20, 0, &(const struct peer){.is_local = true, .pid = 1, .uid = 33, .address = "127.0.0.1:9"});
	denied(20, "LOCK a", "ERR DENIED *");
	says(WEB, "LOCK a");
	hears(WEB, "OK *");
}

TEST(a_failed_auth_leaves_the_user_that_was_shown)
{
	begins();
	says(WORKER, "AUTH other wrong");
	verification_ends(0, false);
	hears(WORKER, "ERR AUTH *");
	says(WORKER, "LOCK jobs/1");
	hears(WORKER, "OK *");
	says(WORKER, "AUTH other secret");
	verification_ends(0, true);
	passes(100 * MSEC);
	hears(WORKER, "OK user=other");
	denied(WORKER, "LOCK jobs/1", "ERR DENIED *");
}

/* --- what lists and pushes show --- */

static void holds(unsigned k, const char *name)
{
	says(k, "LOCK %s", name);
	hears(k, "OK *");
}

TEST(lists_show_only_what_one_may_look_at)
{
	begins();
	holds(OPERATOR, "jobs/1");
	holds(OPERATOR, "web/1");
	holds(OPERATOR, "web/secret");
	says(WEB, "LIST limit=1");
	hears(WEB, "\\* name=web/1 *");
	hears(WEB, "OK n=1 more=0");
	says(CERTIFIED, "LIST");
	hears(CERTIFIED, "\\* name=jobs/1 *");
	hears(CERTIFIED, "\\* name=web/1 *");
	hears(CERTIFIED, "\\* name=web/secret *");
	hears(CERTIFIED, "OK n=3 more=0");
	denied(WORKER, "LIST", "ERR DENIED LIST needs the right 'look', which no rule gives to this peer here");
}

TEST(sessions_are_ones_own_or_all_for_an_administrator)
{
	begins();
	opens(20, 33, 33, false);
	says(WEB, "LIST sessions");
	hears(WEB, "\\* session=* uid=33 *");
	hears(WEB, "\\* session=* uid=33 *");
	hears(WEB, "OK n=2 more=0");
	says(WORKER, "LIST sessions");
	hears(WORKER, "\\* session=* peer=10.0.0.7:1 *");
	hears(WORKER, "OK n=1 more=0");
	says(CERTIFIED, "LIST sessions");
	hears(CERTIFIED, "\\* session=* cert=\"CN=db3\" *");
	hears(CERTIFIED, "OK n=1 more=0");
	says(OPERATOR, "LIST sessions limit=1");
	hears(OPERATOR, "\\* *");
	hears(OPERATOR, "OK n=1 more=6");
}

TEST(a_watcher_hears_of_what_it_may_look_at)
{
	begins();
	says(WEB, "WATCH");
	hears(WEB, "OK *");
	holds(OPERATOR, "jobs/1");
	holds(OPERATOR, "web/secret");
	holds(OPERATOR, "web/1");
	hears(WEB, "! EVENT kind=granted name=web/1 *");
	hears_nothing(WEB);
}

TEST(contended_is_for_those_who_may_look)
{
	begins();
	says(WORKER, "SUBSCRIBE");
	hears(WORKER, "OK");
	holds(WORKER, "jobs/1");
	says(OPERATOR, "LOCK jobs/1 wait=1m");
	hears_nothing(WORKER);
	says(WEB, "SUBSCRIBE");
	hears(WEB, "OK");
	holds(WEB, "web/1");
	says(OPERATOR, "@a LOCK web/1 wait=1m");
	hears(WEB, "! CONTENDED name=web/1 *");
}

TEST(completion_passes_over_what_one_may_not_look_at)
{
	begins();
	holds(OPERATOR, "web/secret");
	holds(OPERATOR, "a");
	holds(OPERATOR, "web/z");
	says(WEB, "COMPLETE limit=1");
	hears(WEB, "\\* name=web/z");
	hears(WEB, "OK n=1");
}

static void hides(int from, int to)
{
	for (int i = from; i < to; i++) {
		says(OPERATOR, "LOCK a/%04d", i);
		hears(OPERATOR, "OK *");
		says(OPERATOR, "UNLOCK a/%04d", i);
		hears(OPERATOR, "OK *");
		if (i % NOTES_OF_USER == NOTES_OF_USER - 1)
			passes(NOTES_EVERY_US);
	}
}

/* Whoever may look at little does not make the daemon go through all that others have locked. */
TEST(completion_looks_at_so_many_names_at_most)
{
	begins();
	holds(OPERATOR, "web/z");
	passes(NOTES_EVERY_US);
	hides(0, COMPLETE_LOOKS - 1);
	says(WEB, "COMPLETE");
	hears(WEB, "\\* name=web/z");
	hears(WEB, "OK n=1");
	hides(COMPLETE_LOOKS - 1, COMPLETE_LOOKS);
	says(WEB, "COMPLETE");
	hears(WEB, "OK n=0");
	says(WEB, "COMPLETE web/");
	hears(WEB, "\\* name=web/z");
	hears(WEB, "OK n=1");
}

#define LONG_NAMES 8

/* 200 rules about parts of names, and one that lets WEB look at web/…; it locks some long names last. */
static void locks_under_many_rules(void)
{
	static struct rule rule[202];
	static char part[200][16];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(part[i], sizeof(part[i]), "*part%03u*", i);
		rule[i] = (struct rule){i + 1, 33, -1, NULL, NULL, part[i], 0};
	}
	rule[200] = (struct rule){201, 33, -1, NULL, NULL, "web/*", RIGHT_LOCK | RIGHT_LOOK};
	rule[201] = (struct rule){202, 33, -1, NULL, NULL, NULL, RIGHT_LOCK};
	begins_with(rule, 202);
	holds(WEB, "web/z");
	for (int i = 0; i < LONG_NAMES; i++) {
		says(WEB, "LOCK %0400d", i);
		hears(WEB, "OK *");
	}
}

/* To go through so many rules takes long: a request that asks them about each name gives up earlier. */
TEST(many_rules_bound_how_many_names_COMPLETE_and_RECENT_look_at)
{
	locks_under_many_rules();
	says(WEB, "COMPLETE");
	hears(WEB, "OK n=0");
	says(WEB, "COMPLETE web/");
	hears(WEB, "\\* name=web/z");
	hears(WEB, "OK n=1");
	says(WEB, "RECENT");
	hears(WEB, "OK n=0");
}

TEST(many_rules_bound_how_many_names_LIST_looks_at_in_a_step)
{
	locks_under_many_rules();
	says(WEB, "LIST");
	hears_nothing(WEB);
	passes(2 * MSEC);
	hears(WEB, "\\* name=web/z *");
	hears(WEB, "OK n=1 more=0");
}
