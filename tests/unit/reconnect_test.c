/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client library across connections that break, against a daemon that plays transcripts: what is asked again, what is not, and
 * what may be believed afterwards.
 */
#include "client/redlock.h"
#include "tests/unit/fake_daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE   5000
#define ARRAY_N(a) (int)(sizeof(a) / sizeof((a)[0]))

#define HELLO   "< HELLO 1 name=me grace=5000ms$\n> OK proto=1 session=7 secret=s7\n"
#define GRANT   "OK name=n fence=17 valid_ms=9000 ttl_ms=10000 count=1"
#define CHECKED "OK name=n fence=17 valid_ms=8000 count=1"
#define LOCK    "< LOCK n$\n> " GRANT "\n< CHECK n$\n> " CHECKED "\n"
#define ROW     "> * name=n fence=17 valid_ms=7000 count=1\n"
#define RESUME  "< RESUME 7 s7$\n"
#define KEPT    "+\n" RESUME ROW "> OK session=7 n=1\n"
#define NOTHING "+\n" RESUME "> OK session=7 n=0\n"
#define GONE    "+\n" RESUME "> ERR NOTFOUND no such session\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n"
#define CHECK   "< CHECK n$\n> OK name=n fence=17 valid_ms=6000 count=1\n"
#define QUIT    "< QUIT$\n> OK\n"
#define QUIT_BY "< @quit QUIT$\n> @quit OK\n" /* past a request that is not answered */

struct scene {
	struct fake_daemon f;
	struct redlock *c;
	struct redlock_grant grant;
};

static void scene_open(struct scene *s, const char *script, int64_t timeout_ms)
{
	fake_daemon_begin(&s->f, script);
	ck_assert_int_eq(redlock_open(s->f.addr, timeout_ms, &s->c), 0);
	ck_assert_int_eq(redlock_hello(s->c, &(struct redlock_session){.label = "me", .grace_ms = 5000}), 0);
}

/* With n held. */
static void scene_begin(struct scene *s, const char *script)
{
	scene_open(s, script, PATIENCE);
	ck_assert_int_eq(redlock_lock(s->c, "n", NULL, &s->grant), 0);
	ck_assert_int_eq(s->grant.fence, 17);
}

static void scene_end(struct scene *s)
{
	redlock_close(s->c);
	fake_daemon_end(&s->f);
}

static void check_is(struct scene *s, int expected)
{
	int r = redlock_check(s->c, "n", &s->grant);

	ck_assert_msg(r == expected, "%d, not %d: %s", r, expected, redlock_errmsg(s->c));
}

static void refused_as(const struct scene *s, int r, const char *code)
{
	ck_assert_int_eq(r, REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(s->c), code);
}

/* The one LOST that is told, and no further. */
static void lost_once(struct scene *s, const char *text)
{
	const struct redlock_line *push = redlock_next_push(s->c);
	struct redlock_bytes said;

	ck_assert_ptr_nonnull(push);
	said = redlock_line_text(push);
	ck_assert_msg(said.n == strlen(text) && !memcmp(said.p, text, said.n), "%.*s", (int)said.n, said.p);
	ck_assert_ptr_null(redlock_next_push(s->c));
}

START_TEST(a_check_goes_on_over_the_next_connection)
{
	struct scene s;
	int64_t before;

	scene_begin(&s, HELLO LOCK "< CHECK n$\n" KEPT CHECK QUIT);
	before = redlock_now_us();
	check_is(&s, 0);
	ck_assert_int_eq(s.grant.fence, 17);
	ck_assert_int_eq(s.grant.valid_ms, 6000);
	ck_assert_int_ge(s.grant.until_us, before + 6000000);
	ck_assert_int_le(s.grant.until_us, redlock_now_us() + 6000000);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}
END_TEST

START_TEST(without_grace_a_broken_connection_stays_broken)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< HELLO 1 name=me$\n> OK session=7 secret=s7\n< CHECK n\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_hello(c, &(struct redlock_session){.label = "me"}), 0);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	redlock_close(c);
	fake_daemon_end(&f);
}
END_TEST

START_TEST(a_daemon_that_gives_no_grace_leaves_the_session_without)
{
	struct scene s;

	scene_open(&s, "< HELLO 1 name=me grace=5000ms$\n> OK session=7\n< CHECK n\n", PATIENCE);
	check_is(&s, -ECONNRESET);
	scene_end(&s);
}
END_TEST

START_TEST(a_daemon_that_is_stopped_breaks_no_connection)
{
	struct scene s;

	scene_open(&s, HELLO "< CHECK n\n" QUIT_BY, 50);
	check_is(&s, -ETIMEDOUT);
	check_is(&s, -ETIMEDOUT);
	scene_end(&s);
}
END_TEST

/* --- drops at every byte --- */

/* What is asked, with what answer, and what the daemon tells and hears over the next connection. */
struct exchange {
	const char *request, *answer, *resumed, *again;
	int (*call)(struct scene *s);
};

static int lock_n(struct scene *s)
{
	return redlock_lock(s->c, "n", NULL, &s->grant);
}

static int check_n(struct scene *s)
{
	return redlock_check(s->c, "n", &s->grant);
}

static int extend_n(struct scene *s)
{
	return redlock_extend(s->c, "n", 9000, &s->grant);
}

static int unlock_n(struct scene *s)
{
	return redlock_unlock(s->c, "n", 70);
}

static const struct exchange exchanges[] = {
	/* not granted yet: asked again */
	{"LOCK n", GRANT, RESUME "> OK session=7 n=0\n", "< LOCK n$\n> " GRANT "\n" CHECK, lock_n},
	/* granted, but the answer was lost: not asked again, or it would count twice */
	{"LOCK n", GRANT, RESUME ROW "> OK session=7 n=1\n", CHECK, lock_n},
	/* a new session has to ask anew */
	{"LOCK n", GRANT, RESUME "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n",
	 "< LOCK n$\n> " GRANT "\n" CHECK, lock_n},
	{"CHECK n", CHECKED, RESUME ROW "> OK session=7 n=1\n", CHECK, check_n},
	{"EXTEND n ttl=9000ms", CHECKED, RESUME ROW "> OK session=7 n=1\n", "< EXTEND n ttl=9000ms$\n> " CHECKED "\n", extend_n},
	/* not done yet: that grant only */
	{"UNLOCK n keep=70ms", "OK name=n count=0", RESUME ROW "> OK session=7 n=1\n",
	 "< UNLOCK n keep=70ms fence=17$\n> OK name=n count=0\n", unlock_n},
	/* done */
	{"UNLOCK n keep=70ms", "OK name=n count=0", RESUME "> OK session=7 n=0\n", "", unlock_n},
	{"UNLOCK n keep=70ms", "OK name=n count=0",
	 RESUME "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n", "", unlock_n},
};

static void exchange_play(const struct exchange *x, const char *cut)
{
	struct scene s;
	char script[2000];
	bool locks = x->call == lock_n;
	int r;

	snprintf(script, sizeof(script), HELLO "%s%s+\n%s%s" QUIT, locks ? "" : LOCK, cut, x->resumed, x->again);
	scene_open(&s, script, PATIENCE);
	if (!locks)
		ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	r = x->call(&s);
	ck_assert_msg(r == 0, "%d: %s; %s", r, redlock_errmsg(s.c), script);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}

START_TEST(a_drop_at_any_byte_of_a_request_changes_nothing)
{
	const struct exchange *x = &exchanges[_i];
	char cut[32];
	size_t n;

	for (n = 0; n <= strlen(x->request); n++) {
		snprintf(cut, sizeof(cut), "# %zu\n", n);
		exchange_play(x, cut);
	}
}
END_TEST

START_TEST(a_drop_at_any_byte_of_an_answer_changes_nothing)
{
	const struct exchange *x = &exchanges[_i];
	char cut[400];
	size_t n;

	for (n = 0; n <= strlen(x->answer); n++) {
		snprintf(cut, sizeof(cut), "< %s$\n>> %.*s\n", x->request, (int)n, x->answer);
		exchange_play(x, cut);
	}
}
END_TEST

/* Without a line end the answer of RESUME is none, so the next attempt asks for the same. */
static const char *const resumptions[] = {"* name=n fence=17 valid_ms=7000 count=1", "OK session=7 n=1", "ERR NOTFOUND none"};

START_TEST(a_drop_at_any_byte_of_RESUME_is_followed_by_another)
{
	const char *text = resumptions[_i];
	char script[1000];
	struct scene s;
	size_t n;

	for (n = 0; n <= strlen(text); n++) {
		snprintf(script, sizeof(script), HELLO LOCK "< CHECK n$\n+\n" RESUME "%s>> %.*s\n" KEPT CHECK QUIT,
			 _i == 1 ? ROW : "", (int)n, text);
		scene_begin(&s, script);
		check_is(&s, 0);
		ck_assert_ptr_null(redlock_next_push(s.c));
		scene_end(&s);
	}
	for (n = 0; n <= strlen("RESUME 7 s7"); n++) {
		snprintf(script, sizeof(script), HELLO LOCK "< CHECK n$\n+\n# %zu\n" KEPT CHECK QUIT, n);
		scene_begin(&s, script);
		check_is(&s, 0);
		scene_end(&s);
	}
}
END_TEST

/* --- what is lost --- */

START_TEST(a_row_that_is_missing_is_a_loss_that_is_told_once)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK "< CHECK n$\n" NOTHING "< CHECK m$\n> ERR NOTHELD no\n< CHECK n$\n> ERR NOTHELD no\n" QUIT);
	refused_as(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	refused_as(&s, redlock_extend(s.c, "n", 0, &s.grant), "LOST");
	refused_as(&s, redlock_check(s.c, "m", &s.grant), "NOTHELD");
	refused_as(&s, redlock_unlock(s.c, "n", 0), "LOST");
	refused_as(&s, redlock_check(s.c, "n", &s.grant), "NOTHELD");
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}
END_TEST

START_TEST(a_refused_RESUME_loses_all_and_begins_a_session)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK
		    "< CHECK n$\n" GONE
		    "< LOCK n$\n> OK name=n fence=18 valid_ms=9 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=9 count=1\n+\n"
		    "< RESUME 8 s8$\n> * name=n fence=18 valid_ms=9\n> OK session=8 n=1\n< CHECK n$\n> OK name=n fence=18 "
		    "valid_ms=9 count=1\n" QUIT);
	refused_as(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	lost_once(&s, "! LOST name=n fence=17 reason=expired");
	ck_assert_str_eq(redlock_session_id(s.c), "8");
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	check_is(&s, 0);
	ck_assert_int_eq(s.grant.fence, 18);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}
END_TEST

START_TEST(a_row_with_another_fence_is_no_answer_to_the_old_grant)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK "< CHECK n$\n+\n" RESUME "> * name=n fence=18 valid_ms=7000\n> OK session=7 n=1\n" QUIT);
	refused_as(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scene_end(&s);
}
END_TEST

START_TEST(a_loss_that_a_push_told_is_not_told_again)
{
	struct scene s;

	/* As the daemon tells what was lost while nobody listened: behind the OK. */
	scene_begin(&s, HELLO LOCK "< CHECK n$\n+\n" RESUME
				   "> OK session=7 n=0\n> ! LOST name=n fence=17 reason=quorum\n< PING$\n> OK\n" QUIT);
	refused_as(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scene_end(&s);

	scene_begin(&s, HELLO LOCK "> ! LOST name=n fence=17 reason=quorum\n< CHECK n$\n" NOTHING
				   "< CHECK n$\n> ERR LOST gone\n" QUIT);
	refused_as(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	lost_once(&s, "! LOST name=n fence=17 reason=quorum");
	scene_end(&s);
}
END_TEST

START_TEST(rows_that_were_left_out_are_no_losses)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK "+\n" RESUME "> OK session=7 n=0 more=1\n" CHECK QUIT);
	check_is(&s, 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}
END_TEST

START_TEST(rows_tell_many_locks_apart)
{
	char script[16000] = HELLO, name[16], expected[80];
	const struct redlock_line *push;
	struct redlock_bytes said;
	struct redlock_grant grant;
	struct scene s;
	int i;

	for (i = 0; i < 50; i++)
		sprintf(script + strlen(script),
			"< LOCK m%d$\n> OK name=m%d fence=%d valid_ms=9000\n< CHECK m%d$\n> OK name=m%d fence=%d "
			"valid_ms=9000\n",
			i, i, i + 1, i, i, i + 1);
	strcat(script, "+\n" RESUME);
	for (i = 0; i < 50; i += 2)
		sprintf(script + strlen(script), "> * name=m%d fence=%d valid_ms=9000\n", i, i + 1);
	strcat(script, "> * name=foreign fence=5 valid_ms=9000\n> * name=m1 owner=x fence=2 valid_ms=9000\n> OK session=7 n=27\n"
		       "< CHECK m0$\n> OK name=m0 fence=1 valid_ms=9000\n" QUIT);
	scene_open(&s, script, PATIENCE);
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		ck_assert_int_eq(redlock_lock(s.c, name, NULL, &grant), 0);
	}
	ck_assert_int_eq(redlock_check(s.c, "m0", &grant), 0);
	for (i = 49; i > 0; i -= 2) {
		push = redlock_next_push(s.c);
		ck_assert_ptr_nonnull(push);
		snprintf(expected, sizeof(expected), "! LOST name=m%d fence=%d reason=evicted", i, i + 1);
		said = redlock_line_text(push);
		ck_assert_uint_eq(said.n, strlen(expected));
		ck_assert_int_eq(strncmp(said.p, expected, said.n), 0);
	}
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}
END_TEST

START_TEST(an_unlock_after_the_belief_ended_hears_of_the_loss)
{
	struct timespec pause = {0, 30000000};
	struct scene s;

	scene_open(
		&s,
		HELLO
		"< LOCK n$\n> OK name=n fence=17 valid_ms=20\n< CHECK n$\n> OK name=n fence=17 valid_ms=20\n< UNLOCK n$\n" NOTHING
			QUIT,
		PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	nanosleep(&pause, NULL);
	refused_as(&s, redlock_unlock(s.c, "n", 0), "LOST");
	lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scene_end(&s);
}
END_TEST

/* --- waiting --- */

#define WAITS "< LOCK n wait=2000ms note=x$\n"
static const struct redlock_options waits = {.wait_ms = 2000, .note = "x"};

START_TEST(a_wait_goes_on_for_what_is_left_of_it)
{
	struct scene s;

	/* 300 ms are gone for certain, and 1 ms at least is left. */
	scene_open(&s, HELLO WAITS "- 300\n" NOTHING "< LOCK n wait=1\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), 0);
	scene_end(&s);
	scene_open(&s, HELLO WAITS NOTHING "< LOCK n wait=\n> TIMEOUT name=n waited_ms=7\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), REDLOCK_TIMEOUT);
	scene_end(&s);
	scene_open(&s, HELLO "< LOCK n wait=30ms$\n- 100\n" NOTHING "< LOCK n wait=1ms$\n> TIMEOUT name=n waited_ms=1\n" QUIT,
		   PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.wait_ms = 30}, &s.grant), REDLOCK_TIMEOUT);
	scene_end(&s);
	scene_open(&s, HELLO "< LOCK n wait=forever$\n" GONE "< LOCK n wait=forever$\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.wait_ms = REDLOCK_FOREVER}, &s.grant), 0);
	scene_end(&s);
}
END_TEST

START_TEST(a_daemon_that_leaves_refuses_and_the_wait_goes_on_at_the_next)
{
	struct scene s;

	scene_open(&s, HELLO WAITS "> ERR DRAINING leaving\n" NOTHING "< LOCK n wait=\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), 0);
	scene_end(&s);
	/* It stays after all. */
	scene_open(&s, HELLO WAITS "> ERR DRAINING leaving\n< LOCK n wait=\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), 0);
	scene_end(&s);
	/* Who does not wait hears it. */
	scene_open(&s, HELLO "< LOCK n$\n> ERR DRAINING leaving\n" QUIT, PATIENCE);
	refused_as(&s, redlock_lock(s.c, "n", NULL, &s.grant), "DRAINING");
	scene_end(&s);
}
END_TEST

START_TEST(a_turn_that_came_after_its_asker_gave_up_is_given_back)
{
	struct redlock_options brief = {.wait_ms = 20};
	struct scene s;

	scene_open(&s,
		   HELLO "< LOCK n wait=20ms$\n- 300\n+\n" RESUME ROW
			 "> OK session=7 n=1\n< UNLOCK n fence=17$\n> OK name=n count=0\n"
			 "< PING$\n> OK\n" QUIT,
		   50);
	ck_assert_int_eq(redlock_lock(s.c, "n", &brief, &s.grant), -ECONNABORTED);
	ck_assert(redlock_away(s.c));
	redlock_set_timeout(s.c, PATIENCE);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	ck_assert(!redlock_away(s.c));
	scene_end(&s);
	/* Granted, but not to be believed: the CHECK behind it was not answered. */
	scene_open(&s,
		   HELLO "< LOCK n$\n> " GRANT "\n- 300\n+\n" RESUME ROW "> OK session=7 n=1\n< UNLOCK n fence=17$\n> OK name=n "
			 "count=0\n< PING$\n> OK\n" QUIT,
		   50);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scene_end(&s);
}
END_TEST

/* --- bounds --- */

START_TEST(no_call_lasts_longer_than_it_may_and_the_next_goes_on)
{
	struct scene s;
	int64_t before;
	int i;

	scene_begin(&s, HELLO LOCK "- 400\n" KEPT CHECK QUIT);
	redlock_set_timeout(s.c, 50);
	for (i = 0; i < 3; i++) {
		before = redlock_now_us();
		check_is(&s, -ECONNABORTED);
		ck_assert_int_ge(redlock_now_us() - before, 50000);
	}
	redlock_set_timeout(s.c, PATIENCE);
	check_is(&s, 0);
	scene_end(&s);
}
END_TEST

START_TEST(a_RESUME_that_is_not_answered_is_given_up_for_another)
{
	struct scene s;

	scene_open(&s, HELLO LOCK "+\n" RESUME "=\n" KEPT CHECK QUIT, 400);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	check_is(&s, -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	check_is(&s, 0);
	scene_end(&s);
}
END_TEST

START_TEST(what_is_refused_for_the_moment_is_asked_again)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK "+\n" RESUME "> ERR QUORUM 1 of 3\n+\n" RESUME "> ERR DRAINING\n+\n" RESUME
				   "> BUSY\n" KEPT CHECK QUIT);
	check_is(&s, 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scene_end(&s);
}
END_TEST

static void pid_leave(const struct scene *s)
{
	FILE *file = fopen(fake_daemon_path(&s->f, "pid"), "w");

	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
}

/* A turn that came is told by a row; its OK comes when this process has left its id. */
START_TEST(rows_are_believed_from_before_they_were_asked_for)
{
	struct timespec pause = {0, 20000000};
	struct scene s;
	int64_t asked;

	scene_open(&s, HELLO WAITS "+\n" RESUME ROW "! 0\n> OK session=7 n=1\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &waits), 0);
	do {
		struct pollfd fd = {.fd = redlock_fd(s.c), .events = redlock_events(s.c)};

		ck_assert_int_eq(redlock_process(s.c), 0);
		poll(&fd, 1, 5);
	} while (!redlock_away(s.c) || redlock_fd(s.c) < 0);
	asked = redlock_now_us();
	nanosleep(&pause, NULL);
	pid_leave(&s);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), 0);
	ck_assert_int_eq(redlock_grant(s.c, &s.grant), 0);
	ck_assert_int_eq(s.grant.fence, 17);
	ck_assert_int_eq(s.grant.valid_ms, 7000);
	ck_assert_int_le(s.grant.until_us, asked + 7000000);
	scene_end(&s);
}
END_TEST

START_TEST(drops_without_end_are_borne_with_growing_pauses)
{
	char script[4000] = HELLO LOCK;
	struct scene s;
	int64_t before;
	int i;

	for (i = 0; i < 20; i++)
		strcat(script, i % 2 ? "+\n" RESUME : "+\n");
	strcat(script, KEPT CHECK QUIT);
	scene_begin(&s, script);
	redlock_set_timeout(s.c, 30000);
	before = redlock_now_us();
	check_is(&s, 0);
	/* 10 ms doubled up to 500 ms, each drawn between a half and the whole: twenty of them are more than 3 s. */
	ck_assert_int_ge(redlock_now_us() - before, 3000000);
	scene_end(&s);
}
END_TEST

/* --- other requests --- */

START_TEST(a_request_of_unknown_fate_is_told_as_that)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK "< BREAK x$\n" KEPT CHECK QUIT);
	ck_assert_int_eq(redlock_request(s.c, "BREAK x", 0, NULL, NULL), -ECONNABORTED);
	check_is(&s, 0);
	scene_end(&s);
	/* What was not sent yet waits for the next connection. */
	scene_open(&s, HELLO "- 50\n+\n" RESUME "> OK n=0\n< PING$\n> OK\n" QUIT, PATIENCE);
	while (!redlock_away(s.c))
		ck_assert_int_eq(redlock_process(s.c), 0);
	ck_assert_int_eq(redlock_fd(s.c), -1);
	ck_assert_int_lt(redlock_due_us(s.c), redlock_now_us() + 1000000);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scene_end(&s);
}
END_TEST

START_TEST(nonsense_is_not_resumed)
{
	struct scene s;

	scene_begin(&s, HELLO LOCK "< CHECK n$\n> HTTP/1.1 400 Bad Request\n" QUIT_BY);
	check_is(&s, -EPROTO);
	check_is(&s, -EPROTO);
	scene_end(&s);
}
END_TEST

START_TEST(only_who_said_HELLO_says_QUIT)
{
	struct scene s;
	pid_t pid;
	int status;

	scene_begin(&s, HELLO LOCK CHECK QUIT);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		redlock_close(s.c);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	check_is(&s, 0);
	scene_end(&s);
}
END_TEST

START_TEST(a_QUIT_overtakes_a_LOCK_that_waits)
{
	struct scene s;

	scene_open(&s, HELLO "< LOCK n wait=2000ms$\n" QUIT_BY, PATIENCE);
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &(struct redlock_options){.wait_ms = 2000}), 0);
	scene_end(&s);
}
END_TEST

static volatile sig_atomic_t alarms;

static void alarm_count(int number)
{
	(void)number;
	alarms++;
}

START_TEST(signals_interrupt_nothing)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = alarm_count};
	struct scene s;

	scene_begin(&s, HELLO LOCK "< CHECK n$\n- 200\n" KEPT CHECK QUIT);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	check_is(&s, 0);
	setitimer(ITIMER_REAL, &never, NULL);
	ck_assert_int_gt(alarms, 0);
	scene_end(&s);
}
END_TEST

Suite *reconnect_suite(void)
{
	Suite *suite = suite_create("reconnect");
	TCase *tests = tcase_create("reconnect");

	tcase_add_test(tests, a_check_goes_on_over_the_next_connection);
	tcase_add_test(tests, without_grace_a_broken_connection_stays_broken);
	tcase_add_test(tests, a_daemon_that_gives_no_grace_leaves_the_session_without);
	tcase_add_test(tests, a_daemon_that_is_stopped_breaks_no_connection);
	tcase_add_loop_test(tests, a_drop_at_any_byte_of_a_request_changes_nothing, 0, ARRAY_N(exchanges));
	tcase_add_loop_test(tests, a_drop_at_any_byte_of_an_answer_changes_nothing, 0, ARRAY_N(exchanges));
	tcase_add_loop_test(tests, a_drop_at_any_byte_of_RESUME_is_followed_by_another, 0, ARRAY_N(resumptions));
	tcase_add_test(tests, a_row_that_is_missing_is_a_loss_that_is_told_once);
	tcase_add_test(tests, a_refused_RESUME_loses_all_and_begins_a_session);
	tcase_add_test(tests, a_row_with_another_fence_is_no_answer_to_the_old_grant);
	tcase_add_test(tests, a_loss_that_a_push_told_is_not_told_again);
	tcase_add_test(tests, rows_that_were_left_out_are_no_losses);
	tcase_add_test(tests, rows_tell_many_locks_apart);
	tcase_add_test(tests, an_unlock_after_the_belief_ended_hears_of_the_loss);
	tcase_add_test(tests, a_wait_goes_on_for_what_is_left_of_it);
	tcase_add_test(tests, a_daemon_that_leaves_refuses_and_the_wait_goes_on_at_the_next);
	tcase_add_test(tests, a_turn_that_came_after_its_asker_gave_up_is_given_back);
	tcase_add_test(tests, no_call_lasts_longer_than_it_may_and_the_next_goes_on);
	tcase_add_test(tests, a_RESUME_that_is_not_answered_is_given_up_for_another);
	tcase_add_test(tests, what_is_refused_for_the_moment_is_asked_again);
	tcase_add_test(tests, rows_are_believed_from_before_they_were_asked_for);
	tcase_add_test(tests, drops_without_end_are_borne_with_growing_pauses);
	tcase_add_test(tests, a_request_of_unknown_fate_is_told_as_that);
	tcase_add_test(tests, nonsense_is_not_resumed);
	tcase_add_test(tests, only_who_said_HELLO_says_QUIT);
	tcase_add_test(tests, a_QUIT_overtakes_a_LOCK_that_waits);
	tcase_add_test(tests, signals_interrupt_nothing);
	tcase_set_timeout(tests, 30);
	suite_add_tcase(suite, tests);
	return suite;
}
