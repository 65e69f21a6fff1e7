/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/queries.c, metric.c: the figures one by one, and STATS, which tells the same. */
#include "daemon/core/event/metric.h"
#include "tests/fixture/cluster.h"

#include <stdio.h>

/* --- what is told --- */

#define TEXTS_MOST 2048

static struct {
	char text[TEXTS_MOST][160];
	unsigned n;
	enum metric last;
} told;

static void sample_keep(void *context, const struct sample *s)
{
	char name[SAMPLE_NAME], value[SAMPLE_TEXT], *at = told.text[told.n];
	int n;

	(void)context;
	ck_assert_uint_lt(told.n, TEXTS_MOST);
	ck_assert_msg(told.n == 0 || s->metric >= told.last, "%s is told twice", metric_table[s->metric].name);
	told.last = s->metric;
	sample_name(s, name);
	sample_text(s, value);
	n = snprintf(at, sizeof(told.text[0]), "* metric=%s value=%s", name, value);
	for (unsigned i = 0; i < s->labels; i++)
		n += snprintf(at + n, sizeof(told.text[0]) - (size_t)n, " %s=%s", s->label[i].name, s->label[i].value);
	told.n++;
}

static void tells(unsigned d)
{
	told.n = 0;
	service_tally(cluster.daemon[d].service, &(struct sampler){NULL, sample_keep, true});
}

static bool is_told(const char *text)
{
	for (unsigned i = 0; i < told.n; i++)
		if (strcmp(told.text[i], text) == 0)
			return true;
	return false;
}

static void told_now(const char *text)
{
	tells(0);
	ck_assert_msg(is_told(text), "not told: %s", text);
}

static const struct sampler keeper = {NULL, sample_keep, true};

static const char *text_of(int64_t us)
{
	told.n = 0;
	sampler_report_plain(&keeper, METRIC_HOLD_LONGEST, us);
	return strrchr(told.text[0], '=') + 1;
}

TEST(times_are_told_in_seconds)
{
	ck_assert_str_eq(text_of(0), "0.000000");
	ck_assert_str_eq(text_of(1), "0.000001");
	ck_assert_str_eq(text_of(61 * SEC + 25), "61.000025");
	ck_assert_str_eq(text_of(-1), "-0.000001");
	sampler_report_plain(&keeper, METRIC_NAMES, -7);
	ck_assert_str_eq(told.text[1], "* metric=names value=-7");
}

TEST(a_histogram_is_told_in_parts)
{
	struct histogram h = {0};

	histogram_add(&h, 2);
	histogram_add(&h, 3);
	histogram_add(&h, 1 << 30);
	told.n = 0;
	sampler_report_histogram(&keeper, METRIC_ROUND_TRIPS, "server", "x", &h, 7);
	ck_assert_uint_eq(told.n, HISTOGRAM_BOUNDS + 3);
	ck_assert_str_eq(told.text[0], "* metric=redis_round_trip_seconds_bucket value=0 server=x le=1e-06");
	ck_assert_str_eq(told.text[1], "* metric=redis_round_trip_seconds_bucket value=1 server=x le=2e-06");
	ck_assert_str_eq(told.text[2], "* metric=redis_round_trip_seconds_bucket value=2 server=x le=5e-06");
	ck_assert_str_eq(told.text[HISTOGRAM_BOUNDS], "* metric=redis_round_trip_seconds_bucket value=3 server=x le=+Inf");
	ck_assert_str_eq(told.text[HISTOGRAM_BOUNDS + 1], "* metric=redis_round_trip_seconds_count value=3 server=x");
	ck_assert_str_eq(told.text[HISTOGRAM_BOUNDS + 2], "* metric=redis_round_trip_seconds_sum value=0.000007 server=x");
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		char le[40];

		snprintf(le, sizeof(le), " le=%g", (double)histogram_bound_us[i] / (double)SEC);
		ck_assert_str_eq(strrchr(told.text[i], ' '), le);
	}
}

TEST(a_histogram_is_told_without_its_buckets_to_those_who_do_not_want_them)
{
	const struct sampler brief = {NULL, sample_keep, false};
	const struct histogram h = {.count = {1, [HISTOGRAM_BOUNDS] = 1}};

	told.n = 0;
	sampler_report_histogram(&brief, METRIC_ROUND_TRIPS, "server", "x", &h, 7);
	ck_assert_uint_eq(told.n, 2);
	ck_assert_str_eq(told.text[0], "* metric=redis_round_trip_seconds_count value=2 server=x");
	ck_assert_str_eq(told.text[1], "* metric=redis_round_trip_seconds_sum value=0.000007 server=x");
}

FIXTURE(.teardown = cluster_close)

TEST(stats_has_a_row_for_each_sample)
{
	const char *line;

	cluster_begin(3);
	says(1, "LOCK a");
	says(2, "LOCK a");
	passes(SEC);
	says(1, "UNLOCK a");
	ignores(1);
	ignores(2);
	tells(0);
	ck_assert_uint_gt(told.n, 200);
	says(1, "STATS all");
	for (unsigned i = 0; i < told.n; i++) {
		line = next_line(1);
		ck_assert_ptr_nonnull(line);
		if (!strstr(line, " command=stats"))
			ck_assert_str_eq(line, told.text[i]);
	}
	ck_assert_int_eq(number_in(hears(1, "OK n=*"), "n"), told.n);
	ck_assert(is_told("* metric=redis_up value=1 server=c"));
	ck_assert(is_told("* metric=quorum_available value=1"));
	falls(1);
	falls(2);
	passes(SEC);
	told_now("* metric=quorum_available value=0");
	told_now("* metric=redis_up value=0 server=c");
	told_now("* metric=redis_up value=1 server=a");
	comes(1);
	comes(2);
	passes(60 * SEC);
}

/* So its help names the figure that shows whether locks are granted. */
TEST(a_store_that_is_silent_stays_joined)
{
	cluster_begin(3);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	passes(10 * SEC);
	told_now("* metric=nodes_joined value=3");
	ck_assert(is_told("* metric=quorum_available value=0"));
	ck_assert_ptr_nonnull(strstr(metric_table[METRIC_NODES_JOINED].help, "quorum_available"));
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	passes(60 * SEC);
}

static void outer_report(void *context, enum metric which, const struct sampler *to)
{
	if (which == METRIC_CLIENTS)
		sampler_report_one(to, which, "transport", "tcp", *(const int *)context);
}

TEST(the_daemon_around_the_service_tells_what_is_its_own)
{
	int clients = 5;
	const struct outer outer = {&clients, outer_report};

	cluster_open(1);
	cluster.conf.outer = &outer;
	daemon_starts(0);
	passes(60 * SEC);
	session_opens(1, 0);
	says(1, "STATS all");
	while (strcmp(next_line(1), "* metric=clients value=5 transport=tcp") != 0)
		;
	ignores(1);
	clients = 6;
	told_now("* metric=clients value=6 transport=tcp");
}

TEST(without_it_there_are_no_such_figures)
{
	cluster_begin(1);
	tells(0);
	for (unsigned i = 0; i < told.n; i++)
		ck_assert_ptr_null(strstr(told.text[i], "metric=clients"));
}

TEST(STATS_leaves_buckets_out_when_the_answer_gets_long)
{
	const char *line;
	unsigned rows = 0;
	bool held = false;

	cluster_open(5);
	cluster.conf.limits.output = 65536;
	daemon_starts(0);
	passes(60 * SEC);
	session_opens(1, 0);
	tells(0);
	says(1, "STATS all");
	while (strncmp(line = next_line(1), "* ", 2) == 0) {
		rows++;
		held |= strncmp(line, "* metric=hold_seconds_total ", 28) == 0;
	}
	ck_assert(held);
	ck_assert_uint_lt(rows, told.n);
	ck_assert_int_eq(number_in(line, "n"), rows);
	ck_assert_int_eq(number_in(line, "more"), told.n - rows);
	for (unsigned i = rows; i < told.n; i++)
		ck_assert_msg(strstr(told.text[i], "_seconds_"), "left out: %s", told.text[i]);
}

/* --- results --- */

static void count_is(const char *verb, const char *result, int n)
{
	char text[128];

	snprintf(text, sizeof(text), "* metric=requests_total value=%d command=%s result=%s", n, verb, result);
	told_now(text);
}

static void says_all(unsigned k, const char *const *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		says(k, "%s", line[i]);
}

/* Requests that are answered later: each is counted as what it is, whatever is served meanwhile. */
TEST(answers_are_counted_by_command_and_result)
{
	static const char *const first[] = {
		"LOCK a", "LOCK a", "@1 UNLOCK a sync=yes", "@2 UNLOCK a sync=yes", "LOCK a", "ACQUIRE s limit=1", "RATE r limit=1 per=1m",
		"RATE r limit=1 per=1m", "DEFER q x id=j", "@3 TAKE q", "DONE j", "@4 TAKE q", "@5 SHOW a all=yes", "LIST", "@6 LIST queues",
		"EXTEND a", "CHECK a", "CHECK b", "LOCKALL x y", "NONSENSE", "RECENT",
	};
	static const char *const second[] = {
		"LOCK a", "@1 LOCK a wait=1s", "@2 LOCKALL a b", "@3 LOCKANY a b wait=1s", "@4 LOCKANY a x wait=1s", "@5 ACQUIRE s limit=1",
		"@6 ACQUIRE s limit=1 wait=1s", "@7 TAKE q wait=1s", "@8 LOCK a wait=5s", "CANCEL @8", "@9 LOCK a wait=5s", "@9 PING",
	};
	static const struct {
		const char *verb, *result;
		int n;
	} expected[] = {{"lock", "ok", 3},    {"lock", "busy", 1},    {"lock", "timeout", 1},    {"lock", "error", 1},    {"unlock", "ok", 2},
	                {"acquire", "ok", 1}, {"acquire", "busy", 1}, {"acquire", "timeout", 1}, {"rate", "ok", 1},       {"rate", "busy", 1},
	                {"defer", "ok", 1},   {"take", "ok", 1},      {"take", "busy", 1},       {"take", "timeout", 1},  {"done", "ok", 1},
	                {"show", "ok", 1},    {"list", "ok", 2},      {"extend", "ok", 1},       {"check", "ok", 1},      {"check", "error", 1},
	                {"lockall", "ok", 1}, {"lockall", "busy", 1}, {"lockany", "ok", 1},      {"lockany", "timeout", 1}, {"cancel", "ok", 1},
	                {"ping", "ok", 0},    {"ping", "error", 1},   {"other", "error", 1},     {"recent", "ok", 1},     {"stats", "ok", 0}};

	cluster_open(1);
	daemon_starts(0);
	passes(60 * SEC);
	session_opens(1, 0);
	session_opens(2, 0);
	says_all(1, first, sizeof(first) / sizeof(*first));
	passes(100 * MSEC);
	says_all(2, second, sizeof(second) / sizeof(*second));
	passes(2 * SEC);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		count_is(expected[i].verb, expected[i].result, expected[i].n);
	ck_assert(is_told("* metric=acquire_wait_seconds_count value=3 result=busy"));
	ck_assert(is_told("* metric=acquire_wait_seconds_count value=3 result=timeout"));
	ck_assert(is_told("* metric=acquire_wait_seconds_sum value=3.000000 result=timeout"));
	ck_assert(is_told("* metric=acquire_wait_seconds_count value=1 result=error"));
	ignores(1);
	ignores(2);
}

TEST(requests_of_the_web_are_not_counted)
{
	cluster_begin(1);
	session_opens_for_the_web(3, 0);
	says(3, "LIST");
	says(3, "STATS all");
	says(3, "SHOW a");
	says(3, "NONSENSE");
	ignores(3);
	ck_assert_int_eq(answered(0), 0);
}

TEST(many_mistakes_are_as_many_answers)
{
	cluster_open(1);
	cluster.conf.limits.mistakes = 3;
	daemon_starts(0);
	session_opens(1, 0);
	for (unsigned i = 0; i < 3; i++)
		says(1, "NONSENSE");
	ignores(1);
	count_is("other", "error", 3);
}

/* --- reasons --- */

TEST(ends_of_holds_are_counted_by_reason)
{
	cluster_begin(1);
	session_opens_as_admin(3, 0);
	says(1, "LOCK a");
	says(1, "UNLOCK a");
	says(1, "LOCK b");
	says(1, "LOCK c renew=no ttl=1s");
	says(3, "BREAK b");
	passes(3 * SEC);
	says(1, "LOCK d");
	says(1, "LOCK e");
	goes(1, GONE_HANGUP);
	session_opens(4, 0);
	says(4, "LOCK f");
	says(4, "QUIT");
	passes(SEC);
	told_now("* metric=releases_total value=2 reason=client");
	ck_assert(is_told("* metric=releases_total value=2 reason=disconnect"));
	ck_assert(is_told("* metric=releases_total value=1 reason=forced"));
	ck_assert(is_told("* metric=releases_total value=1 reason=expired"));
	ck_assert(is_told("* metric=leases_lost_total value=1 reason=broken"));
	ck_assert(is_told("* metric=leases_lost_total value=1 reason=expired"));
	ck_assert(is_told("* metric=leases_lost_total value=0 reason=quorum"));
	ck_assert(is_told("* metric=losses_total value=2"));
	ck_assert(is_told("* metric=hold_seconds_count value=6"));
	ignores(1);
	ignores(3);
	ignores(4);
}

TEST(renewals_are_counted_by_result)
{
	cluster_begin(1);
	says(1, "LOCK a");
	passes(4 * SEC);
	told_now("* metric=renewals_total value=1 result=ok");
	ck_assert(is_told("* metric=renewals_total value=0 result=missed"));
	refuses(0, "BUSY");
	passes(5 * SEC);
	tells(0);
	ck_assert(!is_told("* metric=renewals_total value=0 result=missed"));
	ck_assert(!is_told("* metric=renewals_missed_total value=0"));
	feels(0, MOOD_WELL);
	passes(20 * SEC);
	ignores(1);
}

TEST(jobs_and_those_who_wait_for_some_are_counted)
{
	cluster_begin(1);
	says(1, "DEFER q x");
	says(1, "DEFER q y");
	says(1, "TAKE q");
	says(2, "TAKE q");
	says(2, "@1 TAKE q wait=1m");
	says(2, "@2 TAKE p wait=1m");
	told_now("* metric=jobs_held value=2");
	ck_assert(is_told("* metric=takes_waiting value=2"));
	goes(2, GONE_HANGUP);
	passes(SEC);
	told_now("* metric=jobs_held value=1");
	ck_assert(is_told("* metric=takes_waiting value=0"));
	ignores(1);
}

TEST(the_lag_is_that_of_the_last_work_that_was_due)
{
	cluster_begin(1);
	passes(2 * SEC);
	told_now("* metric=event_loop_lag_seconds value=0.000000");
	jumps(3 * SEC);
	passes(0);
	tells(0);
	ck_assert(!is_told("* metric=event_loop_lag_seconds value=0.000000"));
	passes(2 * SEC);
	told_now("* metric=event_loop_lag_seconds value=0.000000");
}
