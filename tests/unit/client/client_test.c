/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/redlock.h: the client library against a scripted daemon, over one connection. */
#include "client/lib/redlock.h"
#include "proto/proto.h"
#include "tests/fixture/fake_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 5000

static struct redlock *opened(const struct fake_daemon *f, int64_t timeout_ms)
{
	struct redlock *c = NULL;

	ck_assert_int_eq(redlock_open(f->addr, timeout_ms, &c), 0);
	return c;
}

static void ends(struct redlock *c, struct fake_daemon *f)
{
	redlock_close(c);
	fake_daemon_end(f);
}

static const char *bytes(struct redlock_bytes b)
{
	static char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)b.n, b.p ? b.p : "(none)");
	return text;
}

TEST(a_grant_is_valid_from_before_its_CHECK)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;
	int64_t before, after;

	fake_daemon_begin(&f, "< LOCK orders/42\n> OK name=orders/42 fence=17 valid_ms=9000 ttl_ms=10000 count=1\n"
			      "< CHECK orders/42\n> OK name=orders/42 fence=17 valid_ms=500 count=1\n=\n");
	c = opened(&f, PATIENCE);
	before = redlock_now_us();
	ck_assert_int_eq(redlock_lock(c, "orders/42", NULL, &grant), 0);
	after = redlock_now_us();
	ck_assert_int_eq(grant.fence, 17);
	ck_assert_int_eq(grant.ttl_ms, 10000);
	ck_assert_int_eq(grant.valid_ms, 500);
	ck_assert_int_ge(grant.until_us, before + 500000);
	ck_assert_int_le(grant.until_us, after + 500000);
	ck_assert_int_le(redlock_left_us(&grant), 500000);
	ends(c, &f);
}

/* Whoever counts on with these must not overflow. */
TEST(a_ttl_and_a_count_that_no_daemon_tells_are_cut)
{
	static const char reply[] = "OK name=a fence=17 valid_ms=9000 ttl_ms=9223372036854775807 count=9223372036854775807\n";
	struct redlock_grant grant;
	struct fake_daemon f;
	struct redlock *c;
	char script[512];

	snprintf(script, sizeof(script), "< LOCK a\n> %s< CHECK a\n> %s=\n", reply, reply);
	fake_daemon_begin(&f, script);
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_lock(c, "a", NULL, &grant), 0);
	ck_assert_int_eq(grant.valid_ms, 9000);
	ck_assert(grant.ttl_ms > 0 && grant.ttl_ms <= DURATION_MAX / 1000);
	ck_assert(grant.count > 0 && grant.count <= DURATION_MAX / 1000);
	ends(c, &f);
}

TEST(options_stand_in_the_request_and_the_name_is_quoted)
{
	struct redlock_options o = {.size = sizeof(o), .wait_ms = REDLOCK_FOREVER, .ttl_ms = 3000, .no_renew = true, .note = "a \"b\"",
			.shared = true, .priority = 3,
				    .delay_ms = 20, .trace = "00-t"};
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< LOCK \"a b=\\x01\" wait=forever ttl=3000ms mode=shared renew=no note=\"a \\\"b\\\"\" trace=00-t priority=3 "
			      "delay=20ms$\n> OK name=x fence=1 valid_ms=9 ttl_ms=9 count=1\n"
			      "< CHECK \"a b=\\x01\"\n> OK name=x fence=1 valid_ms=9 count=1\n"
			      "< EXTEND \"a b=\\x01\" ttl=50ms\n> OK name=x fence=1 valid_ms=50\n"
			      "< UNLOCK \"a b=\\x01\" keep=70ms\n> OK name=x count=0\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_lock(c, "a b=\x01", &o, &grant), 0);
	ck_assert_int_eq(redlock_extend(c, "a b=\x01", 50, &grant), 0);
	ck_assert_int_eq(grant.valid_ms, 50);
	ck_assert_int_eq(grant.count, 0); /* unknown: the session may hold the lock more than once */
	ck_assert_int_eq(redlock_unlock(c, "a b=\x01", 70), 0);
	ends(c, &f);
}

TEST(busy_says_who_and_for_how_long)
{
	struct redlock_grant grant = {.fence = -7};
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(
		&f, "< LOCK n\n> BUSY name=n holder=\"worker-7 pid=4211 uid=33\" held_ms=250400 waiters=3\n"
		    "< LOCK n wait=10ms\n> TIMEOUT name=n waited_ms=10\n< LOCK n\n> ERR QUORUM 1 of 3 stores answered\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_lock(c, "n", NULL, &grant), REDLOCK_BUSY);
	ck_assert_str_eq(redlock_errmsg(c), "n is held by worker-7 pid=4211 uid=33 for 4m10s");
	ck_assert_str_eq(redlock_code(c), "");
	ck_assert_int_eq(redlock_lock(c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 10}, &grant), REDLOCK_TIMEOUT);
	ck_assert_str_eq(redlock_errmsg(c), "n was not free within 10ms");
	ck_assert_int_eq(redlock_lock(c, "n", NULL, &grant), REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(c), "QUORUM");
	ck_assert_str_eq(redlock_errmsg(c), "QUORUM 1 of 3 stores answered");
	ck_assert_int_eq(grant.fence, -7);
	ends(c, &f);
}

TEST(pushes_between_replies_are_kept_in_their_order)
{
	const struct redlock_line *push;
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(
		&f,
		"< CHECK n\n> ! RISK name=n fence=1 left_ms=9\n> OK name=n fence=1 valid_ms=9 count=1\n> ! SAFE name=n fence=1\n"
		"< CHECK n\n> ! LOST name=n fence=1 reason=quorum\n> ERR LOST gone\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_check(c, "n", &grant), 0);
	ck_assert_int_eq(redlock_check(c, "n", &grant), REDLOCK_REFUSED);
	push = redlock_next_push(c);
	ck_assert_str_eq(bytes(redlock_line_code(push)), "RISK");
	ck_assert_int_eq(redlock_line_number(push, "left_ms", 0), 9);
	ck_assert_str_eq(bytes(redlock_line_code(redlock_next_push(c))), "SAFE");
	push = redlock_next_push(c);
	ck_assert_str_eq(bytes(redlock_line_find(push, "reason")), "quorum");
	ck_assert_str_eq(bytes(redlock_line_text(push)), "! LOST name=n fence=1 reason=quorum");
	ck_assert_ptr_null(redlock_next_push(c));
	ends(c, &f);
}

static void row_append(void *arg, const struct redlock_line *row)
{
	strcat(arg, bytes(redlock_line_find(row, "name")));
	strcat(arg, ";");
}

TEST(rows_come_in_order_however_the_bytes_are_cut)
{
	char names[64] = "";
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< LIST\n. * name=a\n. * name=\"b c\"\n. ! RISK name=a fence=1\n. * name=d\n. OK n=3 more=0\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_request(c, "LIST", 0, row_append, names), 0);
	ck_assert_str_eq(names, "a;b c;d;");
	ck_assert_int_eq(redlock_line_number(redlock_answer(c), "n", 0), 3);
	ck_assert_str_eq(bytes(redlock_line_word(redlock_answer(c))), "OK");
	ck_assert_uint_eq(redlock_line_fields(redlock_answer(c)), 2);
	ck_assert_str_eq(bytes(redlock_line_name(redlock_answer(c), 1)), "more");
	ck_assert_ptr_null(redlock_line_value(redlock_answer(c), 2).p);
	ends(c, &f);
}

TEST(no_answer_ends_the_call_and_the_lock_stays_until_close)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;
	int64_t before = redlock_now_us();

	fake_daemon_begin(&f, "< CHECK n\n=\n");
	c = opened(&f, 40);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ETIMEDOUT);
	ck_assert_int_ge(redlock_now_us() - before, 40000);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ETIMEDOUT);
	ck_assert_int_ge(fcntl(redlock_fd(c), F_GETFD), 0);
	ck_assert_int_eq(fcntl(redlock_fd(c), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ends(c, &f);
}

TEST(a_refused_timeout_changes_nothing)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< CHECK n\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_set_timeout(c, 40), 0);
	ck_assert_int_eq(redlock_set_timeout(c, 0), -EINVAL);
	ck_assert_int_eq(redlock_set_timeout(c, -1), -EINVAL);
	ck_assert_int_eq(redlock_set_timeout(c, INT64_MAX), -EINVAL);
	ck_assert_str_eq(redlock_errmsg(c), "a timeout is more than 0 ms");
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ETIMEDOUT);
	ends(c, &f);
}

TEST(a_poll_loop_of_ones_own_never_waits)
{
	struct redlock_grant grant;
	struct pollfd fd;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< LOCK n wait=5000ms\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_finish(c, 0), -EINVAL);
	ck_assert_int_eq(redlock_lock_send(c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 5000}), 0);
	ck_assert(redlock_in_flight(c));
	ck_assert_int_eq(redlock_finish(c, 0), -EAGAIN);
	ck_assert_int_eq(redlock_check_send(c, "n"), -EBUSY);
	ck_assert_int_eq(redlock_process(c), 0);
	ck_assert_int_eq(redlock_events(c), POLLIN);
	fake_daemon_break(&f);
	fd = (struct pollfd){.fd = redlock_fd(c), .events = redlock_events(c)};
	ck_assert_int_eq(poll(&fd, 1, PATIENCE), 1);
	ck_assert_int_lt(redlock_process(c), 0);
	ck_assert_int_eq(redlock_grant(c, &grant), -EINVAL);
	redlock_close(c);
}

TEST(a_poll_loop_of_ones_own_learns_that_the_time_of_a_request_is_over)
{
	struct redlock *c;
	struct fake_daemon f;
	int64_t before;

	fake_daemon_begin(&f, "< @lock LOCK n wait=5000ms\n< @cancel CANCEL\n=\n");
	c = opened(&f, 40);
	ck_assert(redlock_due_us(c) == INT64_MAX);
	before = redlock_now_us();
	ck_assert_int_eq(redlock_lock_send(c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 5000, .cancellable = true}), 0);
	ck_assert_int_ge(redlock_due_us(c), before + 5040000);
	ck_assert_int_eq(redlock_cancel(c), 0);
	ck_assert_int_le(redlock_due_us(c), redlock_now_us() + 40000);
	while (redlock_now_us() < redlock_due_us(c))
		(void)!poll(NULL, 0, 1);
	ck_assert_int_eq(redlock_process(c), -ETIMEDOUT);
	ck_assert_int_eq(redlock_finish(c, 0), -ETIMEDOUT);
	ends(c, &f);
}

TEST(an_answer_that_came_whole_counts_although_the_daemon_went)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< CHECK n\n> OK name=n fence=1 valid_ms=9 count=1\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_check_send(c, "n"), 0);
	fake_daemon_end(&f);
	ck_assert_int_eq(redlock_finish(c, PATIENCE), 0);
	ck_assert_int_eq(redlock_grant(c, &grant), 0);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	redlock_close(c);
}

static const struct {
	const char *script;
	int error;
} nonsense[] = {
	{"< CHECK\n> HTTP/1.1 400 Bad Request\n=\n", -EPROTO},
	{"< CHECK\n> OK name=n\n=\n", -EPROTO},
	{"< CHECK\n> OK fence=1 valid_ms=99999999999999999999\n=\n", -EPROTO},
	{"< CHECK\n> \n=\n", -EPROTO},
	{"< CHECK\n> !\n=\n", -EPROTO},
	{"> OK unasked=1\n=\n", -EPROTO},
	{"< CHECK\n> OK name=\"open\n=\n", -EPROTO},
	{"< CHECK\n", -ECONNRESET},
};

LOOP_TEST(a_line_that_is_no_answer_breaks_the_connection, ARRAY_N(nonsense))
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;
	int r;

	fake_daemon_begin(&f, nonsense[_i].script);
	c = opened(&f, PATIENCE);
	if (nonsense[_i].script[0] == '>') {
		struct pollfd fd = {.fd = redlock_fd(c), .events = POLLIN};

		ck_assert_int_eq(poll(&fd, 1, PATIENCE), 1);
		ck_assert_int_eq(redlock_process(c), nonsense[_i].error);
		redlock_close(c);
		fake_daemon_break(&f);
		return;
	}
	r = redlock_check(c, "n", &grant);
	ck_assert_msg(r == nonsense[_i].error, "%d for %s", r, nonsense[_i].script);
	ck_assert_str_ne(redlock_errmsg(c), "");
	ends(c, &f);
}

/* Once the daemon has answered it is one, and a later version of it may say more. */
TEST(lines_of_a_later_version_and_of_other_tags_are_skipped)
{
	const struct redlock_line *push;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< PING\n> OK\n> ? FUTURE a=b\n> \n> # a comment\n> !\n> ! FUTURE x=1\n< @a PING\n> @b ERR INTERNAL x\n> LATER\n> @a OK\n"
			      "< PING\n> @a ERR INTERNAL x\n> OK\n< PING\n> OK x=\"open\n=\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_ping(c), 0);
	ck_assert_int_eq(redlock_request(c, "@a PING", 0, NULL, NULL), 0);
	ck_assert_int_eq(redlock_ping(c), 0);
	push = redlock_next_push(c);
	ck_assert(push && redlock_line_is(push, "FUTURE"));
	ck_assert_ptr_null(redlock_next_push(c));
	ck_assert_int_eq(redlock_ping(c), -EPROTO);
	ends(c, &f);
}

TEST(what_ends_a_connection_names_the_address)
{
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< PING\n");
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_ping(c), -ECONNRESET);
	ck_assert_msg(strstr(redlock_errmsg(c), f.addr) != NULL, "%s", redlock_errmsg(c));
	ends(c, &f);
	fake_daemon_begin(&f, "< PING\n=\n");
	c = opened(&f, 20);
	ck_assert_int_eq(redlock_ping(c), -ETIMEDOUT);
	ck_assert_msg(strstr(redlock_errmsg(c), f.addr) != NULL, "%s", redlock_errmsg(c));
	ends(c, &f);
}

TEST(a_line_without_end_breaks_the_connection)
{
	static char script[200000] = "< CHECK\n";
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;
	int i;

	for (i = 0; i < 150; i++)
		sprintf(script + strlen(script), ">> %01000d\n", 0);
	strcat(script, "=\n");
	fake_daemon_begin(&f, script);
	c = opened(&f, PATIENCE);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -EPROTO);
	ends(c, &f);
}

TEST(a_request_that_cannot_be_sent_leaves_the_connection_usable)
{
	static char name[514], note[LINE_MAX_DEFAULT + 1];
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< CHECK n\n> OK name=n fence=1 valid_ms=9 count=1\n=\n");
	c = opened(&f, PATIENCE);
	memset(name, 'x', 513);
	memset(note, 'x', sizeof(note) - 1);
	ck_assert_int_eq(redlock_check(c, "", &grant), -EINVAL);
	ck_assert_int_eq(redlock_check(c, name, &grant), -EINVAL);
	ck_assert_int_eq(redlock_lock(c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .note = note}, &grant), -EMSGSIZE);
	ck_assert_int_eq(redlock_request(c, "PING\nPING", 0, NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_request(c, " # a comment", 0, NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_request(c, "", 0, NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_request(c, note, 0, NULL, NULL), -EMSGSIZE);
	ck_assert_int_eq(redlock_check(c, "n", &grant), 0);
	ends(c, &f);
}
