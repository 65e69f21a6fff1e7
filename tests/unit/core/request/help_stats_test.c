/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/queries.c: HELP, SHOW, LIST, STATS: rows, order, pages. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

TEST(a_label_of_the_longest_length_is_told_whole)
{
	char label[257], expected[320];

	memset(label, 'w', sizeof(label) - 1);
	label[sizeof(label) - 1] = 0;
	cluster_begin(1);
	says(1, "HELLO 1 name=%s", label);
	ignores(1);
	says(1, "LIST sessions");
	snprintf(expected, sizeof(expected), "\\* session=* name=%s peer=*", label);
	hears(1, expected);
	ignores(1);
	says(1, "LOCK a");
	ignores(1);
	/* Also where it stands among other things, and the peer behind it. */
	says(2, "LOCK a");
	snprintf(expected, sizeof(expected), "BUSY name=a holder=\"%s pid=* uid=*\" *", label);
	hears(2, expected);
	says(1, "HELLO 1 name=%sx", label);
	hears(1, "ERR *");
}

TEST(help_for_programs_has_a_row_for_every_request)
{
	cluster_begin(1);
	says(1, "@t HELP all");
	for (unsigned i = 0; i < VERB_N; i++)
		hears(1, "@t \\* verb=* usage=* help=*");
	ck_assert_int_eq(number_in(hears(1, "@t OK n=*"), "n"), VERB_N);
}

TEST(help_for_people_has_a_line_for_every_request_in_groups)
{
	const char *line;
	unsigned titles = 0, requests = 0;

	cluster_begin(1);
	says(1, "HELP");
	hears(1, "\\* Session:");
	while (strncmp(line = next_line(1), "* ", 2) == 0) {
		titles += line[strlen(line) - 1] == ':';
		requests += strncmp(line, "*   ", 4) == 0;
		ck_assert_uint_lt(strlen(line), 170);
	}
	ck_assert_uint_eq(requests, VERB_N);
	ck_assert_uint_eq(titles, 5);
	says(1, "?");
	hears(1, "\\* Session:");
	ignores(1);
}

TEST(help_explains_each_field_of_a_request)
{
	cluster_begin(1);
	says(1, "@t HELP rate");
	hears(1, "@t \\* RATE name limit=N per=dur *");
	hears(1, "@t \\* count one more use of a rate limit*");
	hears(1, "@t \\*   wait=dur|forever *");
	hears(1, "@t \\*   limit=N *");
	hears(1, "@t \\*   per=dur  *the length of *");
	hears(1, "@t \\*   cost=N  *");
	while (strncmp(next_line(1), "@t *", 4) == 0)
		;
	says(1, "HELP frobnicate");
	hears(1, "ERR NOTFOUND *");
}

TEST(EXIT_is_QUIT)
{
	cluster_begin(1);
	says(1, "exit");
	hears(1, "OK");
	ck_assert(hung_up(1));
}

TEST(STATS_leaves_out_the_buckets_of_histograms_unless_asked_for_all)
{
	const char *line;
	unsigned rows = 0, buckets = 0;

	cluster_begin(1);
	says(1, "STATS");
	while (strncmp(line = next_line(1), "* ", 2) == 0) {
		ck_assert_ptr_null(strstr(line, "_bucket "));
		rows++;
	}
	ck_assert_int_eq(number_in(line, "n"), rows);
	ck_assert_ptr_null(strstr(line, "more="));
	says(1, "STATS all");
	while (strncmp(line = next_line(1), "* ", 2) == 0)
		buckets += strstr(line, "_bucket ") != NULL;
	ck_assert_int_eq(number_in(line, "n"), rows + buckets);
	ck_assert_uint_gt(buckets, 50);
	says(1, "STATS some");
	hears(1, "ERR ARG STATS takes all, or nothing");
}

TEST(show_tells_the_holder_and_who_waits_in_order)
{
	cluster_begin(1);
	says(1, "HELLO 1 name=worker");
	says(1, "LOCK a note=\"ask ops\" owner=t1");
	says(2, "LOCK a wait=1m note=mine");
	says(3, "LOCK a wait=1m");
	passes(SEC);
	ignores(1);
	says(1, "SHOW a");
	hears(1, "\\* role=holder pos=0 session=1 name=worker peer=unix pid=1001 uid=1000 fence=* held_ms=1000 valid_ms=8897 "
		 "count=1 "
		 "owner=t1 note=\"ask ops\"");
	hears(1, "\\* role=waiter pos=1 session=2 peer=unix pid=1002 uid=1000 waited_ms=1000 note=mine");
	hears(1, "\\* role=waiter pos=2 session=3 *");
	hears(1, "OK n=3");
	says(1, "SHOW nothing");
	hears(1, "OK n=0 free=yes");
}

TEST(SHOW_and_LIST_agree_that_a_lock_without_wait_is_no_waiter)
{
	cluster_begin(1);
	feels(0, MOOD_SILENT);
	says(1, "LOCK a");
	says(2, "LOCK a wait=1s");
	says(3, "SHOW a");
	hears(3, "\\* role=waiter pos=1 session=2 *");
	hears(3, "OK n=1 known=no");
	says(3, "LIST");
	hears(3, "\\* name=a waiters=1");
	hears(3, "OK n=1 *");
	feels(0, MOOD_WELL);
	ignores(1);
	ignores(2);
}

TEST(show_tells_of_a_foreign_holder_that_somebody_waits_for)
{
	cluster_begin(1);
	key_is_overwritten(0, "a", "somebody", -1);
	says(1, "@w LOCK a wait=1m");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=foreign ttl_ms=-1");
	hears(2, "\\* role=waiter pos=1 session=1 *");
	hears(2, "OK n=2");
	says(2, "LIST");
	hears(2, "\\* name=a holder=foreign ttl_ms=-1 waiters=1");
	hears(2, "OK n=1 more=0");
}

TEST(list_shows_a_holder_on_another_host_as_busy_does)
{
	two_daemons(1);
	says(1, "LOCK a");
	says(2, "@w LOCK a wait=1m");
	says(2, "LIST");
	hears(2, "\\* name=a holder=@h0 waiters=1");
	hears(2, "OK n=1 more=0");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* seen_ms=* ttl_ms=*");
	ignores(1);
	ignores(2);
}

TEST(a_holder_elsewhere_is_not_shown_once_nobody_asks)
{
	two_daemons(1);
	says(2, "LOCK a renew=no ttl=1s");
	passes(2 * SEC); /* lost, and remembered */
	says(1, "LOCK a");
	ignores(2);
	session_opens(3, 1);
	says(3, "LOCK a wait=1s");
	passes(SEC);
	hears(3, "TIMEOUT name=a * holder=@h0 *");
	says(1, "UNLOCK a");
	says(3, "SHOW a");
	hears(3, "OK n=0 free=yes");
	feels(0, MOOD_SILENT);
	says(3, "LOCK a wait=10ms");
	passes(SEC);
	hears(3, "ERR QUORUM *");
	ignores(1);
}

static void hold_names(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		says(1, "LOCK n%03u", (i * 37) % 100);
	ignores(1);
}

TEST(list_pages_in_the_order_of_names)
{
	char after[16] = "", next[16];
	unsigned seen = 0;
	int64_t more = 1;

	cluster_begin(1);
	hold_names(0, 50);
	while (more) {
		const char *line;

		says(2, *after ? "LIST locks limit=7 after=%s" : "LIST limit=7", after);
		while (strncmp(line = next_line(2), "* ", 2) == 0) {
			ck_assert_int_eq(sscanf(line, "* name=%15s", next), 1);
			ck_assert_int_gt(strcmp(next, after), 0);
			strcpy(after, next);
			seen++;
		}
		more = number_in(line, "more");
		ck_assert_int_eq(more, 50 - (int)seen);
	}
	ck_assert_uint_eq(seen, 50);
}

static const char long_name[] =
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/* Rows of some 500 bytes, for which an answer has 16 KiB. */
static void much_is_to_be_told(void)
{
	cluster_open(1);
	cluster.conf.limits.output = 65536;
	daemon_starts(0);
	passes(60 * SEC);
}

static void answer_is_cut(const char *ask, unsigned all)
{
	const char *line;
	unsigned rows = 0;
	size_t bytes = 0;

	says(2, "%s", ask);
	passes(10 * MSEC); /* a long LIST takes several steps */
	for (; strncmp(line = next_line(2), "* ", 2) == 0; rows++)
		bytes += strlen(line) + 1;
	ck_assert_uint_ge(bytes, 16384);
	ck_assert_uint_lt(bytes, 17000);
	ck_assert_int_eq(number_in(line, "n"), rows);
	ck_assert_int_eq(number_in(line, "more"), all - rows);
}

TEST(rows_of_an_answer_end_when_they_fill_a_quarter_of_the_output)
{
	much_is_to_be_told();
	says(2, "PING");
	for (unsigned i = 0; i < 100; i++)
		says(1, "LOCK %s-%u", long_name, i);
	ignores(1);
	ignores(2);
	answer_is_cut("LIST", 100);
	answer_is_cut("LIST locks limit=60", 100);
	says(2, "LIST locks limit=10");
	passes(10 * MSEC);
	for (unsigned i = 0; i < 10; i++)
		hears(2, "\\* *");
	hears(2, "OK n=10 more=90");
}

TEST(rows_of_waiters_and_of_sessions_end_likewise)
{
	much_is_to_be_told();
	says(1, "LOCK a");
	for (unsigned i = 0; i < 60; i++)
		says(3, "@w%u LOCK a wait=1m owner=o%u note=%.250s", i, i, long_name);
	ignores(1);
	cluster.conf.limits.output *= 4; /* all in one step */
	service_reload(cluster.daemon[0].service, &cluster.conf);
	answer_is_cut("SHOW a", 61);
	for (unsigned k = 1; k < 60; k++) {
		says(k, "HELLO 1 name=%.120s", long_name);
		ignores(k);
	}
	cluster.conf.limits.output = 4096;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	says(2, "LIST sessions limit=50");
	for (unsigned i = 0; i < 6; i++)
		hears(2, "\\* *");
	hears(2, "OK n=6 more=53");
}

TEST(list_takes_a_prefix_and_a_limit_of_none)
{
	cluster_begin(1);
	says(1, "LOCK b/1");
	says(1, "LOCK a/2");
	says(1, "LOCK a/1");
	ignores(1);
	says(2, "LIST prefix=a/");
	hears(2, "\\* name=a/1 fence=* session=1 holder=* held_ms=0 valid_ms=9897 count=1 waiters=0");
	hears(2, "\\* name=a/2 *");
	hears(2, "OK n=2 more=0");
	says(2, "LIST prefix=a/ limit=0");
	hears(2, "OK n=0 more=2");
	says(2, "LIST prefix=c");
	hears(2, "OK n=0 more=0");
	says(2, "LIST locks limit=10001");
	hears(2, "ERR LIMIT *10000*");
	says(2, "LIST everything");
	hears(2, "ERR ARG *");
}

TEST(list_sessions_pages_by_number)
{
	cluster_begin(1);
	for (unsigned k = 1; k < 5; k++)
		says(k, "HELLO 1 name=%s", k % 2 ? "odd" : "even");
	says(1, "LOCK a");
	says(2, "@w LOCK a wait=1m");
	for (unsigned k = 1; k < 5; k++)
		ignores(k);
	passes(SEC);
	says(4, "LIST sessions limit=2");
	hears(4, "\\* session=1 name=odd peer=unix pid=1001 uid=1000 age_ms=1000 idle_ms=1000 held=1 waiting=0");
	hears(4, "\\* session=2 name=even * held=0 waiting=1");
	hears(4, "OK n=2 more=2");
	says(4, "LIST sessions after=2");
	hears(4, "\\* session=3 *");
	hears(4, "\\* session=4 *");
	hears(4, "OK n=2 more=0");
	says(4, "LIST sessions prefix=odd");
	hears(4, "\\* session=1 *");
	hears(4, "\\* session=3 *");
	hears(4, "OK n=2 more=0");
}

TEST(a_list_may_begin_behind_anything)
{
	cluster_begin(1);
	says(1, "LOCK a");
	ignores(1);
	says(2, "LIST after=\"\"");
	hears(2, "\\* name=a *");
	hears(2, "OK n=1 more=0");
	says(2, "LIST sessions after=1a");
	hears(2, "\\* session=2 *");
	hears(2, "OK n=1 more=0");
	says(2, "LIST sessions after=!");
	hears(2, "\\* session=1 *");
	hears(2, "\\* session=2 *");
	hears(2, "OK n=2 more=0");
	says(2, "LIST sessions after=99999999999999999999");
	hears(2, "OK n=0 more=0");
}

TEST(list_nodes_tells_the_state_of_each)
{
	cluster_begin(3);
	falls(1);
	restarts_blank(2);
	passes(2100 * MSEC);
	says(1, "LIST nodes");
	hears(1, "\\* node=a state=joined *fence=* clock_ms=*");
	hears(1, "\\* node=b state=down reason=\"connection lost\" cause=closed*");
	hears(1, "\\* node=c state=quarantine reason=*blank* left_ms=28503*");
	hears(1, "OK n=3 more=0");
}

/* Loop: it is in quarantine, down, joined. */
LOOP_TEST(a_store_of_this_host_alone_has_one_reason, 3)
{
	static const char *const reason[] = {"it carries no marker", "connection lost", "this host only"};
	const char *told;

	cluster_open(1);
	cluster.conf.shared = false;
	daemon_starts(0);
	passes(2 * QUARANTINE_US);
	if (_i == 0)
		restarts_blank(0);
	if (_i == 1)
		falls(0);
	passes(2100 * MSEC);
	says(1, "LIST nodes");
	told = strstr(hears(1, "\\* node=a *"), " reason=");
	ck_assert_ptr_nonnull(strstr(told, reason[_i]));
	ck_assert_ptr_null(strstr(told + 1, " reason="));
	ignores(1);
}

TEST(stats_tells_every_figure)
{
	const char *line;
	int64_t rows = 1;

	cluster_begin(3);
	says(1, "LOCK a");
	says(2, "LOCK a");
	says(2, "LOCK a wait=1s");
	passes(SEC);
	says(1, "LOCK a");
	says(1, "UNLOCK a");
	says(1, "UNLOCK a");
	says(1, "NONSENSE");
	ck_assert_int_eq(figure(0, METRIC_GRANTS), 1);
	ck_assert_int_eq(figure(0, METRIC_REENTRIES), 1);
	ck_assert_int_eq(figure(0, METRIC_RELEASES_CLIENT), 1);
	ck_assert_int_eq(figure(0, METRIC_REFUSALS), 1);
	ck_assert_int_eq(figure(0, METRIC_TIMEOUTS), 1);
	ck_assert_int_eq(figure(0, METRIC_MISTAKES), 1);
	ck_assert_int_eq(answered(0), 7);
	ck_assert_int_eq(figure(0, METRIC_HOLD_TOTAL), SEC);
	ck_assert_int_eq(figure(0, METRIC_SESSIONS), 2);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
	ignores(1);
	says(1, "STATS");
	hears(1, "\\* metric=sessions value=2");
	while (strncmp(line = next_line(1), "* ", 2) == 0)
		rows++;
	ck_assert_int_eq(number_in(line, "n"), rows);
	ck_assert_ptr_null(strstr(line, "more="));
	ignores(2);
}
