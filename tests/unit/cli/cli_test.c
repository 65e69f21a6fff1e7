/* SPDX-License-Identifier: BSD-2-Clause */
/* client/cli/cli.c: the commands of redlock that ask or tell a daemon, against a scripted one. run and try: run_test.c; mistakes: cli_mistakes_test.c. */
#include "client/cli/io/invocation.h"
#include "tests/fixture/fake_daemon.h"

#include <fnmatch.h>
#include <string.h>

/* At any width of the terminal: who holds a lock is there to be copied. */
TEST(ls_without_long_leaves_fields_out_and_shows_the_holder_in_full)
{
	struct outcome o;

	PLAYED(&o,
	       "< LIST locks limit=1000\n"
	       "> * name=a fence=17 session=3 holder=\"0123456789abcdef 0123456789abcdef "
	       "0123456789abcdef 0123456789abcd \xc3\xbc pid=1\" held_ms=7 waiters=0\n"
	       "> OK n=1 more=0\n=\n",
	       "ls");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "NAME  HOLDER                                                                     HELD  WAITERS\n"
				"a     0123456789abcdef 0123456789abcdef 0123456789abcdef 0123456789abcd \xc3\xbc pid=1  7ms   0\n");
}

/* A terminal shows characters of Chinese, Japanese and Korean, and most emoji, in two columns; the acute accent behind a letter in none. */
TEST(a_wide_character_takes_two_columns)
{
	struct outcome o;

	PLAYED(&o,
	       "< LIST locks limit=1000\n> * name=\xe9\x8e\x96\xf0\x9f\x94\x92 holder=me waiters=0\n"
	       "> * name=abcd holder=e\xcc\x81 waiters=0\n> OK n=2 more=0\n=\n",
	       "ls");
	ck_assert_str_eq(o.out, "NAME  HOLDER  WAITERS\n\xe9\x8e\x96\xf0\x9f\x94\x92  me      0\nabcd  e\xcc\x81       0\n");
}

TEST(ls_shows_the_slots_in_use_of_a_semaphore_apart_from_how_long_a_lock_is_held)
{
	struct outcome o;

	PLAYED(&o,
	       "< LIST locks limit=1000\n> * name=a holder=me held_ms=7 waiters=0\n"
	       "> * name=s kind=semaphore limit=3 held=2 waiters=0\n> OK n=2 more=0\n=\n",
	       "ls");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "NAME  HOLDER  HELD  KIND       LIMIT  USED  WAITERS\n"
				"a     me      7ms                           0\n"
				"s                   semaphore  3      2     0\n");
}

TEST(ls_prints_a_table_of_all_pages)
{
	struct outcome o;

	PLAYED(&o,
	       "< LIST locks limit=1000 prefix=orders/\n> * name=orders/1 holder=\"w pid=1\" fence=17 held_ms=250400 waiters=0\n"
	       "> * name=\"orders/2 b\" holder=me held_ms=7\n> OK n=2 more=1\n"
	       "< LIST locks limit=1000 prefix=orders/ after=\"orders/2 b\"\n> * name=orders/3\\n\n> OK n=1 more=0\n=\n",
	       "ls", "-l", "orders/");
	ck_assert_str_eq(o.err, "");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "NAME         HOLDER   HELD   FENCE  WAITERS\n"
				"orders/1     w pid=1  4m10s  17     0\n"
				"orders/2 b   me       7ms\n"
				"orders/3\\\\n\n");
}

TEST(json_keeps_names_text_and_numbers_numbers)
{
	struct outcome o;

	PLAYED(&o, "< LIST sessions\n> * session=7 name=42 held_ms=12 user=43 permit=3 none=\"\"\n> OK n=1 more=0\n=\n", "clients", "--json");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "{\"session\":7,\"name\":\"42\",\"held_ms\":12,\"user\":\"43\",\"permit\":3,\"none\":\"\"}\n");
}

TEST(top_survives_a_validity_that_no_lease_has)
{
	struct outcome o;

	PLAYED(&o,
	       "< HELLO 1\n> OK server=redlockd/1 store=memory quorum=1 lease_ms=10000\n< LIST nodes\n> * node=memory state=joined\n> OK n=1\n"
	       "< STATS\n> OK n=0\n"
	       "< LIST locks\n> * name=a holder=x held_ms=1 valid_ms=922337203685477581\n> OK n=1 more=0\n< SHOW a\n> OK n=0\n=\n",
	       "top", "--once");
	ck_assert_int_eq(o.code, 0);
	ck_assert_ptr_nonnull(strstr(o.out, "##########"));
}

TEST(doctor_survives_a_lease_and_clocks_that_no_daemon_has)
{
	struct outcome o;

	PLAYED(&o,
	       "< HELLO 1\n> OK server=redlockd/1 store=redis lease_ms=9223372036854775807\n"
	       "< LIST queues limit=1\n> OK n=0 more=0\n< STATS\n> OK n=0\n"
	       "< LIST nodes\n> * node=a state=joined rtt_us=800 clock_ms=9223372036854775807\n"
	       "> * node=b state=joined rtt_us=800 clock_ms=-9223372036854775807\n> OK n=2\n< LIST locks\n> OK n=0 more=0\n=\n",
	       "doctor", "--json");
	ck_assert_ptr_nonnull(strstr(o.out, "\"check\":\"quorum\",\"status\":\"ok\""));
	ck_assert_ptr_null(strstr(o.out, "round-trip"));
	ck_assert_ptr_nonnull(strstr(o.out, "\"check\":\"clocks\",\"status\":\"warn\""));
}

TEST(doctor_says_that_the_clock_of_the_host_is_wrong_if_all_stores_agree)
{
	struct outcome o;

	PLAYED(&o,
	       "< HELLO 1\n> OK server=redlockd/1 store=redis lease_ms=10000\n"
	       "< LIST queues limit=1\n> OK n=0 more=0\n< STATS\n> OK n=0\n"
	       "< LIST nodes\n> * node=a state=joined rtt_us=800 clock_ms=-3600000\n> * node=b state=joined rtt_us=800 clock_ms=-3599900\n"
	       "> * node=c state=down\n> OK n=3\n< LIST locks\n> OK n=0 more=0\n=\n",
	       "doctor", "--json");
	ck_assert_ptr_nonnull(strstr(o.out, "\"this host's clock is 3600.0 s ahead of the stores'\""));
}

TEST(watch_prints_events_until_the_daemon_goes)
{
	static const char events[] = "< WATCH \"a b\"$\n> OK prefixes=1\n> ! EVENT kind=granted name=\"a b/1\" session=3 who=\"w pid=1\" fence=17 waiters=0 "
				     "note=\"n o\"\n> ! DRAIN in_ms=0\n> ! EVENT kind=lost name=42 session=3 who=w fence=17 held_ms=61000 reason=broken\n";
	struct outcome o;

	PLAYED(&o, events, "watch", "a b");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	ck_assert_msg(fnmatch("??:??:??.???  granted   a b/1  w pid=1  fence=17  waiters=0  note=\"n o\"\n"
			      "??:??:??.???  lost      42  w  fence=17  held 1m01s  reason=broken\n", o.out, 0) == 0, "%s", o.out);
	ck_assert_msg(fnmatch("redlock: redlockd at */sock closed the connection; on its host, systemctl status redlockd may say why\n", o.err, 0) == 0,
		      "%s", o.err);
	PLAYED(&o, events, "watch", "--json", "a b");
	ck_assert_str_eq(o.out, "{\"kind\":\"granted\",\"name\":\"a b/1\",\"session\":3,\"who\":\"w pid=1\",\"fence\":17,\"waiters\":0,\"note\":\"n o\"}\n"
				"{\"kind\":\"lost\",\"name\":\"42\",\"session\":3,\"who\":\"w\",\"fence\":17,\"held_ms\":61000,\"reason\":\"broken\"}\n");
	PLAYED(&o, "< WATCH$\n> ERR LIMIT a session may watch at most 64 prefixes\n=\n", "watch");
	ck_assert_int_eq(o.code, 64);
}

TEST(break_and_kill_say_what_they_did)
{
	struct outcome o;

	PLAYED(&o, "< BREAK \"a b\"$\n> OK name=\"a b\" free_in_ms=9500\n=\n", "break", "a b");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "a b is broken; it is free in 9s, or when its holder has acknowledged the loss\n");
	PLAYED(&o, "< BREAK a\n> OK name=a free_in_ms=0\n=\n", "break", "a");
	ck_assert_str_eq(o.out, "a is broken, and free\n");
	PLAYED(&o, "< KILL session=12$\n> OK session=12 n=3\n=\n", "kill", "12", "--json");
	ck_assert_str_eq(o.out, "{\"session\":12,\"n\":3}\n");
	PLAYED(&o, "< KILL session=12$\n> OK session=12 n=3\n=\n", "kill", "12");
	ck_assert_str_eq(o.out, "session 12 is ended; it held 3\n");
	PLAYED(&o, "< BREAK a\n> ERR NOTFOUND nobody holds the lock\n=\n", "break", "a");
	ck_assert_int_eq(o.code, EXIT_NO);
	PLAYED(&o, "< KILL session=12\n> ERR DENIED not you\n=\n", "kill", "12");
	ck_assert_int_eq(o.code, 77);
	ck_assert_str_eq(o.err, "redlock: DENIED not you\n");
}

TEST(show_says_1_for_a_free_lock)
{
	struct outcome o;

	PLAYED(&o,
	       "< SHOW \"a b\"\n> * role=holder session=3 holder=me held_ms=61000\n> * role=waiter pos=1 session=4\n> OK "
	       "n=2\n=\n",
	       "show", "a b");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out,
			 "ROLE    POS  HOLDER  SESSION  HELD\nholder       me      3        1m01s\nwaiter  1            4\n");
	PLAYED(&o, "< SHOW n\n> OK n=0\n=\n", "show", "n");
	ck_assert_int_eq(o.code, EXIT_NO);
	ck_assert_str_eq(o.out, "");
	ck_assert_str_eq(o.err, "redlock: n is free\n");
	PLAYED(&o, "< SHOW n\n> * role=kept pos=0 ttl_ms=4000\n> OK n=1\n=\n", "show", "n");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "ROLE  POS  TTL\nkept  0    4s\n");
	PLAYED(&o, "< SHOW n\n> * role=waiter pos=1 session=4\n> OK n=1 known=no\n=\n", "show", "n");
	ck_assert_int_eq(o.code, EX_UNAVAILABLE);
	ck_assert_str_eq(o.out, "ROLE    POS  SESSION\nwaiter  1    4\n");
	ck_assert_str_eq(o.err, "redlock: it is not known who has n: too few stores answer, or they disagree\n");
	PLAYED(&o, "< SHOW n\n> ERR NOTFOUND nothing of that name\n=\n", "show", "n");
	ck_assert_int_eq(o.code, EXIT_NO);
}

#define HELLO "< HELLO 1\n> OK proto=1 server=redlockd/9 session=1 store=redis nodes=3 quorum=2\n< PING\n> OK\n< STATS\n"

#define TWO "> * metric=redis_up value=1 server=b\n> * metric=redis_up value=0 server=c\n"

TEST(ping_says_whether_there_is_a_quorum)
{
	struct outcome o;

	PLAYED(&o, HELLO "> * metric=quorum_available value=1\n> * metric=redis_up value=1 server=a\n" TWO "> OK n=3\n=\n", "ping");
	ck_assert_int_eq(o.code, 0);
	ck_assert_ptr_eq(strstr(o.out, "ok  redlockd/9  redis 2/3  quorum 2  rtt "), o.out);
	PLAYED(&o, HELLO "> * metric=quorum_available value=0\n" TWO "> * metric=redis_trouble value=1 server=c cause=memory\n> OK n=3\n=\n", "ping", "--json");
	ck_assert_int_eq(o.code, EXIT_NO);
	ck_assert_ptr_eq(
		strstr(o.out, "{\"server\":\"redlockd/9\",\"store\":\"redis\",\"nodes\":3,\"joined\":1,\"quorum\":2,\"rtt_us\":"),
		o.out);
	ck_assert_ptr_nonnull(strstr(o.out, ",\"trouble\":\"memory\"}\n"));
}

TEST(stats_shows_quantiles_in_place_of_buckets)
{
	static const char rows[] = "< STATS all\n> * metric=locks_held value=3\n> * metric=clients value=2 transport=unix\n"
				   "> * metric=w_bucket value=49 le=0.1\n> * metric=w_bucket value=98 le=0.2\n> * metric=w_bucket value=99 le=0.5\n"
				   "> * metric=w_bucket value=100 le=+Inf\n> * metric=w_count value=100\n> * metric=w_sum value=9.500000\n"
				   "> * metric=v_bucket value=0 le=0.1 server=a\n> * metric=v_bucket value=0 le=+Inf server=a\n"
				   "> * metric=v_count value=0 server=a\n> OK n=11\n=\n";
	struct outcome o;

	PLAYED(&o, rows, "stats");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "METRIC      VALUE     P50  P99  TRANSPORT  SERVER\nlocks_held  3\nclients     2                   unix\n"
				"w_count     100       0.2  0.5\nw_sum       9.500000\nv_count     0                              a\n");
	PLAYED(&o, rows, "stats", "--json");
	ck_assert_int_eq(o.code, 0);
	ck_assert_ptr_nonnull(strstr(o.out, "{\"metric\":\"w_bucket\",\"value\":98,\"le\":\"0.2\"}"));
	ck_assert_ptr_nonnull(strstr(o.out, "{\"metric\":\"clients\",\"value\":2,\"transport\":\"unix\"}\n"));
}

TEST(stats_survives_counts_that_no_histogram_has)
{
	static const char rows[] = "< STATS all\n> * metric=w_bucket value=1 le=0.1\n> * metric=w_bucket value=9223372036854775807 le=0.2\n"
				   "> * metric=w_bucket value=9223372036854775807 le=+Inf\n> * metric=w_count value=9223372036854775807\n> OK n=4\n=\n";
	struct outcome o;

	PLAYED(&o, rows, "stats");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "METRIC   VALUE                P50  P99\n"
				"w_count  9223372036854775807  0.2  0.2\n");
}

TEST(raw_shows_the_lines_as_they_come)
{
	struct outcome o;

	PLAYED(&o, "< @a LIST locks\n> @a * name=\"a\\x00\"\n> ! RISK name=x fence=1\n> @a OK n=1\n=\n", "raw", "@a LIST locks");
	ck_assert_int_eq(o.code, 0);
	ck_assert_str_eq(o.out, "@a * name=\"a\\x00\"\n@a OK n=1\n! RISK name=x fence=1\n");
	PLAYED(&o, "< FOO\n> ERR UNKNOWN no \"FOO\"\n=\n", "raw", "FOO", "--json");
	ck_assert_int_eq(o.code, EXIT_NO);
	ck_assert_str_eq(o.out, "{\"reply\":\"ERR\",\"code\":\"UNKNOWN\",\"text\":\"no \\\"FOO\\\"\"}\n");
	PLAYED(&o, "=\n", "raw", "# nothing");
	ck_assert_int_eq(o.code, EX_USAGE);
}
