/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, though one event concerns more than one step can answer. */
#include "daemon/core/session/client.h"
#include "tests/fixture/timed_story.h"

FIXTURE(.seconds = 60)

static void one_name(unsigned sessions, unsigned requests, const char *request)
{
	w.conf.limits.waiting = 16384;
	service_reload(w.service, &w.conf);
	sessions_open(1, sessions + 1);
	for (uint64_t k = 2; k <= sessions + 1; k++)
		for (unsigned i = 0; i < requests; i++)
			says_number(k, "@", i, request);
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
}

static void home_goes_down(void)
{
	one_name(64, 1000, " RATE r limit=1 per=1s wait=1h");
	lone_service_store(&w, false);
	lone_service_pass(&w, 5 * SEC);
	ck_assert_ptr_nonnull(strstr(heard, "ERR UNAVAILABLE"));
}

TEST(the_home_of_a_rate_goes_down_for_which_a_crowd_waits)
{
	measure(home_goes_down);
}

static void home_of_many_goes_down(void)
{
	struct event down = {.kind = EVENT_NODE_DOWN, .node = {.index = 0, .reason = SPAN("test")}};
	char line[100];

	one_name(0, 0, "");
	sessions_open(2, 65);
	says(2, "RATE r limit=1 per=1s");
	lone_service_slow(&w, true);
	for (unsigned k = 2; k <= 65; k++)
		for (unsigned i = 0; i < 1000; i++) {
			snprintf(line, sizeof(line), "@%u RATE %u/%u limit=1 per=1s", i, k, i);
			says(k, line);
		}
	w.longest_ns = 0;
	lone_service_step(&w, &down);
	lone_service_pass(&w, SEC / 100);
	ck_assert_ptr_nonnull(strstr(heard, "ERR UNAVAILABLE"));
}

TEST(the_home_of_many_rates_goes_down)
{
	measure(home_of_many_goes_down);
}

static void rules_allow_no_lock(void)
{
	static const struct rules look = {1, {{1, -1, -1, NULL, NULL, NULL, RIGHT_LOOK}}};
	struct event event = {.kind = EVENT_RULES};

	w.conf.rules = &look;
	service_reload(w.service, &w.conf);
	ck_assert_int_eq(lone_service_step(&w, &event), 0);
}

static void nobody_waits(void)
{
	lone_service_pass(&w, SEC);
	w.conf.rules = NULL;
	service_reload(w.service, &w.conf);
	ck_assert_int_eq(service_metrics(w.service)->value[METRIC_WAITERS], 0);
}

static void rules_deny_a_crowd(const char *request)
{
	one_name(64, 1000, request);
	rules_allow_no_lock();
	nobody_waits();
	ck_assert_ptr_nonnull(strstr(heard, "ERR DENIED"));
}

static void rules_deny_locks(void)
{
	rules_deny_a_crowd(" LOCK x wait=1h");
}

/* Before it was judged. Its places are another session's then, which was judged already. */
static void denied_are_resumed(void)
{
	char secret[100], line[200];
	long long serial = 0;

	one_name(64, 1000, " LOCK x wait=1h");
	heard[0] = '\0';
	sessions_open(66, 66);
	says(66, "HELLO 1 grace=1m");
	ck_assert_ptr_nonnull(strstr(heard, "session="));
	ck_assert_int_eq(sscanf(strstr(heard, "session="), "session=%lld", &serial), 1);
	ck_assert_int_eq(sscanf(strstr(heard, "secret="), "secret=%99s", secret), 1);
	for (unsigned i = 0; i < 100; i++)
		says_number(66, "@", i, " LOCK x wait=1h");
	rules_allow_no_lock();
	lone_service_gone(&w, 66, GONE_HANGUP);
	snprintf(line, sizeof(line), "RESUME %lld %s", serial, secret);
	says(1, line);
	ck_assert_msg(strstr(heard, "OK session=") != NULL, "%s", heard);
	nobody_waits();
}

static void rules_deny_rates(void)
{
	rules_deny_a_crowd(" RATE r limit=1 per=1h wait=2h");
}

LOOP_TEST(new_rules_deny_what_a_crowd_waits_for, 3)
{
	static void (*const story[])(void) = {rules_deny_locks, rules_deny_rates, denied_are_resumed};

	measure(story[_i]);
}

static void keeps_last_though_refused(void *context, uint64_t session, struct span bytes)
{
	(void)context;
	(void)session;
	snprintf(heard, sizeof(heard), "%.*s", (int)bytes.n, bytes.p);
}

static void readers_extend(bool broken)
{
	sessions_open(1, 65);
	for (uint64_t k = 2; k <= 65; k++) {
		says(k, "HELLO 1 grace=30s");
		says(k, "LOCK x mode=shared");
	}
	lone_service_slow(&w, true);
	w.sent = keeps_last_though_refused;
	for (uint64_t k = 2; k <= 65; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "@", i, " EXTEND x");
	ck_assert_ptr_nonnull(strstr(heard, "ERR LIMIT 2048 EXTENDs of this lock are under way"));
	w.longest_ns = 0;
	if (broken)
		says(1, "BREAK x");
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC);
	ck_assert_ptr_nonnull(strstr(heard, broken ? "OK name=x free_in_ms" : "OK name=x fence"));
}

static void readers_extend_what_they_keep(void)
{
	readers_extend(false);
}

static void readers_extend_what_is_broken(void)
{
	readers_extend(true);
}

LOOP_TEST(many_extends_of_a_name_are_answered, 2)
{
	static void (*const story[])(void) = {readers_extend_what_they_keep, readers_extend_what_is_broken};

	measure(story[_i]);
}

static void group_wins(void)
{
	one_name(0, 0, "");
	sessions_open(2, 256);
	says(1, "LOCK x");
	says(256, "@g LOCKALL x y wait=1h");
	for (uint64_t k = 2; k <= 255; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "@", i, " LOCK x wait=1h");
	w.longest_ns = 0;
	says(1, "UNLOCK x");
	lone_service_pass(&w, SEC / 50);
	ck_assert_ptr_nonnull(strstr(heard, "@g OK n=2"));
}

TEST(a_group_wins_a_name_before_a_crowd)
{
	measure(group_wins);
}

/* Tables that find a lock are replaced by larger ones, and by smaller ones. */
static void many_locks_come_and_go(void)
{
	sessions_open(1, 150);
	w.longest_ns = 0;
	for (unsigned k = 1; k <= 150; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "LOCK ", 1000 * k + i, "");
	for (unsigned k = 1; k <= 150; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "UNLOCK ", 1000 * k + i, "");
}

TEST(a_lock_comes_beside_many)
{
	measure(many_locks_come_and_go);
}

/* --- a store that comes back ------------------------------------------------------------------------------------------ */

/* Each of so many sessions says 1,000 of these lines. */
static void each_of_says(unsigned sessions, const char *verb, const char *fields)
{
	char line[100];

	for (unsigned k = 1; k <= sessions; k++)
		for (unsigned i = 0; i < 1000; i++) {
			snprintf(line, sizeof(line), "@%u %s %u/%u%s", i, verb, k, i, fields);
			says(k, line);
		}
}

static void each_says(const char *verb, const char *fields)
{
	each_of_says(40, verb, fields);
}

static void is_back_for(const char *word)
{
	w.longest_ns = 0;
	lone_service_store(&w, true);
	lone_service_pass(&w, SEC);
	ck_assert_ptr_nonnull(strstr(heard, word));
}

static void names_wait(void)
{
	sessions_open(1, 41);
	lone_service_store(&w, false);
	lone_service_pass(&w, SEC / 10);
	each_says("LOCK", " wait=1h");
	is_back_for("OK name=40/999");
}

TEST(a_store_comes_back_for_which_many_names_wait)
{
	measure(names_wait);
}

static void leases_are_at_risk(void)
{
	sessions_open(1, 41);
	each_says("LOCK", "");
	lone_service_store(&w, false);
	lone_service_pass(&w, 8 * SEC);
	is_back_for("! SAFE name=");
}

TEST(a_store_comes_back_to_which_many_leases_are_at_risk)
{
	measure(leases_are_at_risk);
}

/* When each lease ends is reckoned at once: some 60 ns for each. */
static void clock_of_many_leases_jumps(int64_t us)
{
	sessions_open(1, 41);
	each_of_says(20, "LOCK", "");
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
	lone_service_jump(&w, us);
	says(41, "LOCK again");
	for (unsigned i = 0; i < 10; i++) {
		while (!TAILQ_EMPTY(&w.held))
			lone_service_answer(&w);
		lone_service_pass(&w, SEC / 50);
	}
	says(20, "CHECK 20/999");
}

static void their_clock_jumps_by_a_part_of_the_lease(void)
{
	clock_of_many_leases_jumps(2 * SEC);
	ck_assert_ptr_nonnull(strstr(heard, "OK name=20/999"));
}

static void their_clock_jumps_by_more_than_the_lease(void)
{
	clock_of_many_leases_jumps(20 * SEC);
	ck_assert_ptr_nonnull(strstr(heard, "ERR LOST"));
}

LOOP_TEST(the_clock_of_the_store_of_very_many_leases_jumps, 2)
{
	static void (*const story[])(void) = {their_clock_jumps_by_a_part_of_the_lease, their_clock_jumps_by_more_than_the_lease};

	measure(story[_i]);
}

static void names_were_released(void)
{
	sessions_open(1, 41);
	each_says("LOCK", "");
	lone_service_store(&w, false);
	each_says("UNLOCK", "");
	w.longest_ns = 0;
	lone_service_store(&w, true);
	lone_service_settle(&w);
	says(41, "LOCK 40/999");
	lone_service_pass(&w, SEC);
	ck_assert_ptr_nonnull(strstr(heard, "OK name=40/999"));
}

TEST(a_store_comes_back_that_is_to_be_told_of_many_releases)
{
	measure(names_were_released);
}

static char names64[64 * 5];
static const char *asked;

/* The next process asks again for what waits. */
static const char *const asked_again[] = {" LOCK x wait=1h", " ACQUIRE x limit=1 wait=1h", " TAKE x wait=1h", " RATE x limit=1 per=1h wait=1h",
                                          " LOCK x wait=1h mode=shared"};

static void asks_again(void)
{
	w.conf.limits.waiting = 16384;
	service_reload(w.service, &w.conf);
	w.has_two_peers = true;
	sessions_open(1, 9);
	says(1, "LOCK x");
	says(1, "RATE x limit=1 per=1h");
	for (uint64_t k = 2; k <= 9; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "@", i, asked);
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
	ck_assert(lone_service_hand_over(&w));
	lone_service_pass(&w, SEC);
}

LOOP_TEST(a_crowd_asks_again_after_a_restart, sizeof(asked_again) / sizeof(asked_again[0]))
{
	asked = asked_again[_i];
	measure(asks_again);
}

static void groups_ask_again(void)
{
	char line[400];

	sessions_open(1, 9);
	for (unsigned i = 0; i < 64; i++)
		says_number(1, "LOCK n", i, "");
	for (uint64_t k = 2; k <= 9; k++)
		for (unsigned i = 0; i < 64; i++) {
			snprintf(line, sizeof(line), "@%u LOCKANY %swait=1h owner=o%u", i, names64, i);
			says(k, line);
		}
	lone_service_pass(&w, SEC);
	w.longest_ns = 0;
	ck_assert(lone_service_hand_over(&w));
	lone_service_pass(&w, SEC);
}

TEST(groups_of_64_names_ask_again_after_a_restart)
{
	for (unsigned i = 0, n = 0; i < 64; i++)
		n += (unsigned)sprintf(names64 + n, "n%u ", i);
	measure(groups_ask_again);
}

/* --- names under rules that are looked for within them ---------------------------------------------------------------------- */

#define RULES 64

static struct rules *rules_about(const char *before, const char *after)
{
	static char names[RULES][32];
	struct rules *rules = calloc(1, sizeof(*rules) + RULES * sizeof(rules->rule[0]));

	ck_assert_ptr_nonnull(rules);
	rules->count = RULES;
	for (unsigned i = 0; i < RULES; i++) {
		snprintf(names[i], sizeof(names[i]), "%s%02u%s", before, i, after);
		rules->rule[i] = (struct rule){i + 1, -1, -1, NULL, NULL, i + 1 < RULES ? names[i] : NULL, RIGHT_LOCK | RIGHT_LOOK};
	}
	return rules;
}

static void locks_long_names(unsigned names)
{
	char line[600];

	for (unsigned i = 0; i < names; i++) {
		snprintf(line, sizeof(line), "LOCK %0490u/%u", 0, i);
		says(1 + i / 500, line);
		if (i % 250 == 0)
			lone_service_pass(&w, SEC);
	}
}

static void names_are_looked_at(const char *before, const char *after)
{
	struct rules *rules = rules_about(before, after);

	sessions_open(1, 100);
	locks_long_names(3000);
	w.conf.rules = rules;
	service_reload(w.service, &w.conf);
	w.longest_ns = 0;
	says(1, "COMPLETE \"\" limit=1000");
	says(1, "COMPLETE 0000 limit=1000");
	says(1, "RECENT");
	says(1, "LIST locks");
	lone_service_pass(&w, SEC);
	says(1, "LIST sessions");
	lone_service_pass(&w, SEC);
	for (uint64_t k = 20; k <= 100; k++)
		says(k, "WATCH");
	for (uint64_t k = 1; k <= 5; k++)
		lone_service_gone(&w, k, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	w.conf.rules = NULL;
	service_reload(w.service, &w.conf);
	free(rules);
}

static void names_end_in_a_rule(void)
{
	names_are_looked_at("*/no", "");
}

static void names_contain_a_rule(void)
{
	names_are_looked_at("*no/", "*");
}

static void names_contain_parts_of_a_rule(void)
{
	names_are_looked_at("*0*/*0*0.", "*");
}

LOOP_TEST(names_are_looked_at_under_many_rules, 3)
{
	static void (*const story[])(void) = {names_end_in_a_rule, names_contain_a_rule, names_contain_parts_of_a_rule};

	measure(story[_i]);
}

/* --- lines that were read ahead ----------------------------------------------------------------------------------------------- */

static unsigned shows; /* that were answered */

static void counts_shows(void *context, uint64_t session, struct span bytes)
{
	(void)context;
	(void)session;
	shows += span_starts(bytes, SPAN("OK n="));
}

/* The time stands still: each step is one of those that follow at once. */
static unsigned most_shows_of_a_step(void)
{
	unsigned before, most = 0;
	struct instant due;

	while (service_deadline(w.service, &due) && !instant_before(w.now, due)) {
		struct event time = {.kind = EVENT_TIME};

		before = shows;
		ck_assert_int_eq(lone_service_step(&w, &time), 0);
		most = shows - before > most ? shows - before : most;
	}
	return most;
}

/* Each answer has as many rows as one may have. */
static void long_answers_are_read_ahead(void)
{
	unsigned most;

	sessions_open(1, 40);
	says(1, "LOCK x");
	says(1, "LOCK gate");
	crowd_waits(2, 5, 1000, "wait=1h");
	for (uint64_t k = 6; k <= 40; k++) {
		says(k, "LOCK gate mode=shared wait=1h");
		says(k, "SHOW x");
	}
	w.sent = counts_shows;
	w.longest_ns = 0;
	shows = 0;
	says(1, "UNLOCK gate");
	most = most_shows_of_a_step();
	ck_assert_uint_eq(shows, 35);
	ck_assert_msg(most == 1, "a step answers %u", most);
}

TEST(requests_with_long_answers_were_read_ahead)
{
	measure(long_answers_are_read_ahead);
}
