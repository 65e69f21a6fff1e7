/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/commands.c: what a program asks about locks, sessions and names, against a scripted daemon; and over connections that break. */
#include "proto/proto.h"
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROW_OF(name) "> * name=" name "\n"

static char got[256]; /* the names, or the roles, of the rows */

static void noted(void *arg, const struct redlock_line *row)
{
	struct redlock_bytes text = redlock_line_find(row, arg);
	size_t n = strlen(got);

	snprintf(got + n, sizeof(got) - n, "%s%.*s", n ? " " : "", (int)text.n, text.p);
}

static char name[] = "name", role[] = "role", session[] = "session", job[] = "job", metric[] = "metric";

/* Each call, the line that it sends, the rows of its answer, and what comes of them. */
static int shows(struct redlock *c)
{
	return redlock_show(c, "a b", NULL, noted, role);
}

static int shows_all(struct redlock *c)
{
	return redlock_show(c, "a", &(struct redlock_view){.size = sizeof(struct redlock_view), .all = true, .former = true}, noted, role);
}

static int lists(struct redlock *c)
{
	return redlock_list(c, REDLOCK_LOCKS, NULL, noted, name);
}

static int lists_nodes(struct redlock *c)
{
	return redlock_list(c, REDLOCK_NODES, &(struct redlock_page){.size = sizeof(struct redlock_page), .limit = 7}, noted, name);
}

static int counts(struct redlock *c)
{
	return redlock_stats(c, noted, metric);
}

static int completes(struct redlock *c)
{
	return redlock_complete(c, "a b", 20, noted, name);
}

static int completes_all(struct redlock *c)
{
	return redlock_complete(c, "", 0, noted, name);
}

static int remembers(struct redlock *c)
{
	return redlock_recent(c, NULL, 0, noted, name);
}

static int remembers_some(struct redlock *c)
{
	return redlock_recent(c, "a", 3, noted, name);
}

static int pings(struct redlock *c)
{
	return redlock_ping(c);
}

static const struct question {
	const char *line, *rows, *answer, *got;
	int (*call)(struct redlock *c);
} questions[] = {
	{"SHOW \"a b\"", "> * role=holder pos=0\n> * role=waiter pos=1\n", "OK n=2", "holder waiter", shows},
	{"SHOW a all=yes former=yes", "", "OK n=0 known=no", "", shows_all},
	{"LIST locks", ROW_OF("a") ROW_OF("b"), "OK n=2 more=0", "a b", lists},
	{"LIST nodes limit=7", ROW_OF("a"), "OK n=1 more=0", "a", lists_nodes},
	{"STATS", "> * metric=locks value=2\n", "OK n=1", "locks", counts},
	{"COMPLETE \"a b\" limit=20", ROW_OF("\"a bc\""), "OK n=1", "a bc", completes},
	{"COMPLETE", "", "OK n=0", "", completes_all},
	{"RECENT", ROW_OF("z"), "OK n=1", "z", remembers},
	{"RECENT prefix=a limit=3", ROW_OF("ab"), "OK n=1", "ab", remembers_some},
	{"PING", "", "OK", "", pings},
};

FIXTURE(.seconds = 30)

LOOP_TEST(each_asks_in_one_line_and_tells_the_rows, ARRAY_N(questions))
{
	const struct question *q = &questions[_i];
	struct scripted_session s;
	char script[500];

	got[0] = '\0';
	snprintf(script, sizeof(script), HELLO "< %s$\n%s> %s\n" QUIT, q->line, q->rows, q->answer);
	scripted_session_open(&s, script, PATIENCE);
	ck_assert_int_eq(q->call(s.c), 0);
	ck_assert_str_eq(got, q->got);
	scripted_session_end(&s);
}

/* cut: what the daemon does with the first request before it hangs up. */
static void question_cut(const struct question *q, const char *cut)
{
	struct scripted_session s;
	char script[700];
	int r;

	got[0] = '\0';
	snprintf(script, sizeof(script), HELLO "%s+\n" RESUME "> OK session=7 n=0\n< %s$\n%s> %s\n" QUIT, cut, q->line, q->rows, q->answer);
	scripted_session_open(&s, script, PATIENCE);
	r = q->call(s.c);
	ck_assert_msg(r == 0, "%d: %s; %s", r, redlock_errmsg(s.c), script);
	ck_assert_str_eq(got, q->got);
	scripted_session_end(&s);
}

LOOP_TEST(a_drop_at_any_byte_before_the_first_row_is_not_seen, ARRAY_N(questions))
{
	const struct question *q = &questions[_i];
	char cut[200];

	for (size_t n = 0; n <= strlen(q->line); n++) {
		snprintf(cut, sizeof(cut), "# %zu\n", n);
		question_cut(q, cut);
	}
	for (size_t n = 0; n <= strlen(q->answer); n++) {
		if (*q->rows && n > 0)
			break;
		snprintf(cut, sizeof(cut), "< %s$\n>> %.*s\n", q->line, (int)n, q->answer);
		question_cut(q, cut);
	}
}

TEST(a_drop_behind_a_row_is_told_so_that_no_row_comes_twice)
{
	struct scripted_session s;

	got[0] = '\0';
	scripted_session_open(&s, HELLO "< LIST locks$\n" ROW_OF("a") ">> * na\n+\n" RESUME "> OK session=7 n=0\n"
			      "< LIST locks$\n" ROW_OF("b") "> OK n=1 more=0\n" QUIT,
			      PATIENCE);
	ck_assert_int_eq(lists(s.c), -ECONNABORTED);
	ck_assert_str_eq(got, "a");
	ck_assert_int_eq(lists(s.c), 0);
	ck_assert_str_eq(got, "a b");
	scripted_session_end(&s);
}

TEST(a_page_begins_where_the_last_one_ended)
{
	struct redlock_page locks = {.size = sizeof(locks), .prefix = "a", .limit = 2}, sessions = {.size = sizeof(sessions)};
	struct redlock_page jobs = {.size = sizeof(jobs), .prefix = "mail"};
	struct scripted_session s;

	got[0] = '\0';
	scripted_session_open(&s, HELLO "< LIST locks limit=2 prefix=a$\n" ROW_OF("a1") ROW_OF("\"a 2\"") "> OK n=2 more=1\n"
			      "< LIST locks limit=2 prefix=a after=\"a 2\"$\n> ERR LIMIT too many\n"
			      "< LIST locks limit=2 prefix=a after=\"a 2\"$\n" ROW_OF("a3") "> OK n=1 more=0\n"
			      "< LIST sessions$\n> * session=12 name=x\n> OK n=1 more=1\n< LIST sessions after=12$\n> OK n=0 more=0\n"
			      "< LIST jobs prefix=mail$\n> * job=x\n> OK n=1 after=1000\n< LIST jobs prefix=mail after=1000$\n> OK n=0\n" QUIT,
			      PATIENCE);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_LOCKS, &locks, noted, name), 0);
	ck_assert_int_eq(locks.more, 1);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_LOCKS, &locks, noted, name), REDLOCK_REFUSED);
	ck_assert_int_eq(locks.more, 1);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_LOCKS, &locks, noted, name), 0);
	ck_assert_int_eq(locks.more, 0);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_SESSIONS, &sessions, noted, session), 0);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_SESSIONS, &sessions, NULL, NULL), 0);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_JOBS, &jobs, noted, job), 0);
	ck_assert_int_eq(jobs.more, 1);
	ck_assert_int_eq(redlock_list(s.c, REDLOCK_JOBS, &jobs, noted, job), 0);
	ck_assert_int_eq(jobs.more, 0);
	ck_assert_str_eq(got, "a1 a 2 a3 12 x");
	scripted_session_end(&s);
}

TEST(what_cannot_be_asked_is_not_sent)
{
	static char much[LINE_MAX_DEFAULT];
	struct scripted_session s;

	memset(much, 'x', sizeof(much) - 1);
	scripted_session_open(&s, HELLO "< LOCK n wait=9000ms count=1$\n" QUIT_BY, PATIENCE);
	ck_assert_int_eq(redlock_show(s.c, much, NULL, NULL, NULL), -EMSGSIZE);
	ck_assert_int_eq(redlock_list(s.c, (enum redlock_listing)5, NULL, NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 9000}), 0);
	ck_assert_int_eq(redlock_ping(s.c), -EBUSY);
	scripted_session_end(&s);
}
