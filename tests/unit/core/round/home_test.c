/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/round/home.c and rate.c: the one store that counts the uses of a name, and what becomes of RATE when it is lost. */
#include "daemon/core/round/home.h"
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>

#define LIMIT "limit=3 per=60s"

/* The store that is asked first, or next, for the name. */
static unsigned home(const char *name, unsigned place)
{
	struct core core = {.conf = cluster.daemon[0].conf};

	return rendezvous_node(&core, HOME_OF_RATE, span_of(name), place);
}

static void uses_up(unsigned k, unsigned uses)
{
	while (uses-- > 0) {
		says(k, "RATE n " LIMIT);
		hears(k, "OK left=* reset_ms=*");
	}
}

static void home_lost_is(enum home_lost what)
{
	struct core_conf conf = cluster.daemon[0].conf;

	conf.home_lost = what;
	service_reload(cluster.daemon[0].service, &conf);
}

TEST(daemons_count_together_at_one_store_of_three)
{
	two_daemons(3);
	uses_up(1, 2);
	uses_up(2, 1);
	says(1, "RATE n " LIMIT);
	hears(1, "BUSY retry_ms=60000 left=0");
	says(2, "RATE n " LIMIT);
	hears(2, "BUSY retry_ms=60000 left=0");
	ck_assert_uint_eq(cluster.node[home("n", 0)].count[CALL_HOME], 2 + 5); /* each daemon asks each store once for its name */
	ck_assert_uint_eq(asked(CALL_HOME), 6 + 5);
	passes(60 * SEC);
	uses_up(2, 3);
	ck_assert_int_eq(figure(0, METRIC_RATES_ADMITTED), 2);
	ck_assert_int_eq(figure(0, METRIC_RATES_REFUSED), 1);
	cluster_close();
}

static const char *called(const struct core *core, unsigned node)
{
	return core->conf.home[node] ? core->conf.home[node] : core->conf.label[node];
}

TEST(homes_are_spread_over_the_stores_and_follow_names_not_places)
{
	unsigned count[5] = {0};
	struct core one = {.conf = {.nodes = 5, .label = {"a", "b", "c", "d", "e"}}}, other = {.conf = {.nodes = 5, .label = {"e", "v", "w", "x", "y"}}};

	other.conf.home[1] = "d";
	other.conf.home[2] = "b";
	other.conf.home[3] = "c";
	other.conf.home[4] = "a";
	for (unsigned i = 0; i < 1000; i++) {
		char name[16];
		unsigned seen = 0;

		snprintf(name, sizeof(name), "n%u", i);
		count[rendezvous_node(&one, HOME_OF_RATE, span_of(name), 0)]++;
		for (unsigned place = 0; place < 5; place++) {
			unsigned node = rendezvous_node(&one, HOME_OF_RATE, span_of(name), place);

			seen |= 1u << node;
			ck_assert_str_eq(called(&other, rendezvous_node(&other, HOME_OF_RATE, span_of(name), place)), called(&one, node));
		}
		ck_assert_uint_eq(seen, 31);
	}
	for (unsigned i = 0; i < 5; i++)
		ck_assert(count[i] > 150 && count[i] < 250);
}

TEST(without_its_home_a_limit_is_closed)
{
	cluster_begin(3);
	uses_up(1, 2);
	falls(home("n", 0));
	says(1, "RATE n " LIMIT);
	hears(1, "ERR UNAVAILABLE the store that keeps this limit cannot be used: ? is down*");
	ck_assert_int_eq(figure(0, METRIC_RATES_FAILED), 1);
	comes(home("n", 0));
	passes(SEC);
	uses_up(1, 1);
	says(1, "RATE n " LIMIT);
	hears(1, "BUSY *");
	cluster_close();
}

TEST(without_its_home_a_limit_is_open_if_the_configuration_says_so)
{
	cluster_begin(3);
	uses_up(1, 3);
	home_lost_is(LOST_OPEN);
	says(1, "RATE n " LIMIT);
	hears(1, "BUSY *");
	falls(home("n", 0));
	says(1, "@a RATE n " LIMIT);
	hears(1, "@a OK left=0 reset_ms=0 unmetered=yes");
	ck_assert_int_eq(figure(0, METRIC_RATES_UNMETERED), 1);
	cluster_close();
}

TEST(without_its_home_the_next_store_counts_if_the_configuration_says_so)
{
	unsigned first, second, third;

	cluster_begin(3);
	home_lost_is(LOST_NEXT);
	first = home("n", 0), second = home("n", 1), third = home("n", 2);
	uses_up(1, 3);
	falls(first);
	uses_up(1, 3);
	says(1, "RATE n " LIMIT);
	hears(1, "BUSY *");
	ck_assert_uint_eq(cluster.node[second].count[CALL_HOME], 1 + 4);
	ck_assert_int_eq(figure(0, METRIC_RATES_NEXT), 4);
	falls(second);
	uses_up(1, 1);
	ck_assert_uint_eq(cluster.node[third].count[CALL_HOME], 1 + 1);
	falls(third);
	says(1, "RATE n " LIMIT);
	hears(1, "ERR UNAVAILABLE *");
	cluster_close();
}

TEST(a_home_that_does_not_answer_in_time_is_lost_and_its_late_answer_is_nobodys)
{
	cluster_begin(3);
	home_lost_is(LOST_NEXT);
	says(1, "RATE other " LIMIT);
	hears(1, "OK *");
	feels(home("n", 0), MOOD_TARDY);
	says(1, "RATE n " LIMIT);
	hears_nothing(1);
	passes(cluster.conf.timeout_us);
	hears(1, "OK left=2 *");
	ck_assert_int_eq(figure(0, METRIC_RATES_NEXT), 1);
	feels(home("n", 0), MOOD_WELL);
	passes(SEC);
	hears_nothing(1);
	says(1, "RATE n " LIMIT);
	hears(1, "OK left=1 *"); /* it had counted the first */
	home_lost_is(LOST_CLOSED);
	feels(home("n", 0), MOOD_SILENT);
	says(1, "RATE n " LIMIT);
	passes(cluster.conf.timeout_us);
	hears(1, "ERR UNAVAILABLE *: no answer in time; it may have counted this request");
	feels(home("n", 0), MOOD_WELL);
	cluster_close();
}

TEST(a_store_in_quarantine_counts_for_it_remembers_what_it_was_told_since)
{
	cluster_begin(3);
	uses_up(1, 3);
	restarts_blank(home("n", 0));
	passes(SEC);
	ck_assert_str_ne(store_state(0, home("n", 0)), "joined");
	uses_up(1, 3);
	says(1, "RATE n " LIMIT);
	hears(1, "BUSY *");
	passes(QUARANTINE_US);
	says(1, "RATE n limit=3 per=300s");
	hears(1, "BUSY *");
	cluster_close();
}

TEST(a_question_is_asked_again_when_the_marker_has_changed)
{
	cluster_begin(1);
	uses_up(1, 1);
	is_flushed(0);
	says(1, "RATE n " LIMIT);
	passes(SEC / 10);
	hears(1, "OK left=2 *");
	cluster_close();
}

TEST(a_daemon_that_calls_a_store_otherwise_is_refused_there_and_locks_go_on)
{
	unsigned node;

	cluster_open(3);
	daemon_starts(0);
	passes(QUARANTINE_US);
	for (unsigned i = 0; i < 40; i++) {
		says(1, "RATE r%u limit=1 per=60s", i);
		hears(1, "OK *");
	}
	node = home("r0", 0);
	cluster.conf.home[node] = "other";
	cluster.conf.home_lost = LOST_OPEN;
	daemon_starts(1);
	passes(SEC);
	session_opens(2, 1);
	says(2, "LOCK a");
	hears(2, "OK name=a *");
	for (unsigned i = 0, refused = 0; refused == 0; i++) {
		const char *line;

		ck_assert_uint_lt(i, 100);
		says(2, "RATE s%u limit=1 per=60s", i);
		line = next_line(2);
		refused = strncmp(line, "ERR UNAVAILABLE", 15) == 0;
		if (refused)
			ck_assert_ptr_nonnull(strstr(line, "among the other daemons"));
	}
	ck_assert(was_logged("node node=* state=joined cause=misnamed reason=*"));
	cluster_close();
}

TEST(a_store_that_goes_by_another_name_shows_before_anything_is_asked_there)
{
	cluster_begin(1);
	uses_up(1, 1);
	cluster.conf.home[0] = "other";
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(2, 1);
	says(2, "LIST nodes");
	hears(2, "* node=* state=joined reason=\"RATE and jobs are refused: the other daemons call it *\" cause=misnamed *");
	hears(2, "OK n=1 more=0");
	ck_assert(was_logged("node node=* state=joined cause=misnamed reason=*"));
	says(1, "LIST nodes");
	hears(1, "* node=* state=joined fence=*");
	hears(1, "OK n=1 more=0");
	cluster_close();
}

static void other_daemon_calls_them(const char *first, const char *second, const char *third)
{
	cluster_begin(3);
	uses_up(1, 1);
	cluster.conf.home[0] = first;
	cluster.conf.home[1] = second;
	cluster.conf.home[2] = third;
	daemon_starts(1);
	passes(SEC);
	session_opens(2, 1);
}

TEST(a_daemon_that_calls_any_store_otherwise_counts_nowhere)
{
	other_daemon_calls_them("b", "a", "c");
	for (unsigned i = 0; i < 20; i++) {
		says(2, "RATE n%u " LIMIT, i);
		hears(2, "ERR UNAVAILABLE * goes by another name *");
	}
	cluster_close();
	other_daemon_calls_them("x", "b", "c");
	for (unsigned i = 0; i < 20; i++) {
		says(2, "RATE n%u " LIMIT, i);
		hears(2, "ERR UNAVAILABLE *: a goes by another name *");
	}
	cluster_close();
}

TEST(a_daemon_that_calls_a_store_otherwise_gives_no_names)
{
	other_daemon_calls_them("x", "b", "c");
	says(2, "RATE n " LIMIT);
	hears(2, "ERR UNAVAILABLE *");
	restarts_blank(0);
	passes(2 * SEC);
	says(2, "RATE n " LIMIT);
	passes(SEC);
	says(2, "RATE n " LIMIT);
	ignores(2);
	for (unsigned i = 0; i < 20; i++) {
		says(1, "RATE n%u " LIMIT, i);
		hears(1, "OK left=2 *");
	}
	cluster_close();
}

TEST(a_store_that_is_silent_keeps_no_limit_of_another_from_being_counted)
{
	cluster_begin(3);
	feels(home("n", 1), MOOD_SILENT);
	says(1, "RATE n " LIMIT);
	passes(2 * cluster.conf.timeout_us);
	hears(1, "OK left=2 *");
	feels(home("n", 1), MOOD_WELL);
	cluster_close();
}

TEST(each_request_is_judged_by_its_own_window_over_the_same_uses)
{
	cluster_begin(1);
	uses_up(1, 1);
	passes(10 * SEC);
	says(1, "RATE n limit=2 per=1s cost=2");
	hears(1, "OK left=0 reset_ms=1000");
	passes(10 * SEC);
	says(1, "RATE n limit=2 per=1s");
	hears(1, "OK left=1 reset_ms=1000");
	says(1, "RATE n limit=4 per=60s");
	hears(1, "BUSY retry_ms=40000 left=0");
	cluster_close();
}

TEST(the_answer_to_a_session_that_has_gone_is_nobodys)
{
	cluster_begin(3);
	feels(home("n", 0), MOOD_TARDY);
	says(1, "RATE n " LIMIT);
	says(2, "@t RATE n " LIMIT);
	goes(1, GONE_HANGUP);
	says(2, "@t RATE n " LIMIT);
	hears(2, "@t ERR TAGINUSE *");
	half_closes(2);
	feels(home("n", 0), MOOD_WELL);
	hears(2, "@t OK left=1 *");
	cluster_close();
}

TEST(what_makes_no_sense_is_refused)
{
	static const char *const wrong[] = {"RATE", "RATE n", "RATE n limit=3", "RATE n per=1s", "RATE n limit=0 per=1s", "RATE n limit=3 per=0",
					    "RATE n limit=3 per=1s cost=4", "RATE n m limit=3 per=1s"};

	cluster_begin(1);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		says(1, "%s", wrong[i]);
		hears(1, "ERR ARG *");
	}
	says(1, "RATE n limit=1000000001 per=1s");
	hears(1, "ERR LIMIT *");
	says(1, "RATE n limit=3 per=1s cost=0");
	hears(1, "OK left=3 reset_ms=0");
	says(1, "LOCK n");
	hears(1, "OK name=n *");
	ck_assert_uint_eq(asked(CALL_HOME), 1 + 1);
	cluster_close();
}

TEST(many_questions_wait_until_the_store_has_room)
{
	cluster.conf.window = 0;
	cluster_open(1);
	cluster.conf.window = 4;
	cluster.conf.limits.waiting = 64;
	daemon_starts(0);
	passes(QUARANTINE_US);
	feels(0, MOOD_SILENT);
	for (unsigned i = 0; i < 40; i++)
		says(1, "@t%u RATE n limit=100 per=60s", i);
	ck_assert_uint_le(waiting_at(0), 4);
	feels(0, MOOD_WELL);
	for (unsigned i = 0; i < 40; i++)
		hears(1, "@t* OK left=* reset_ms=60000");
	cluster_close();
}
