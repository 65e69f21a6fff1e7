/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/job.c: jobs, against a scripted daemon. */
#include "proto/proto.h"
#include "tests/fixture/client_of_fake.h"
#include "tests/fixture/scripted_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct redlock_bytes bytes(const char *text)
{
	return (struct redlock_bytes){text, strlen(text)};
}

TEST(defer_quotes_what_it_sends_and_tells_the_id)
{
	const struct redlock_deferral options = {.size = sizeof(options), .delay_ms = 1500, .lock = "a b", .id = "x"};
	char id[REDLOCK_JOB_BYTES];

	begins("< DEFER mail \"one two\" delay=1500ms lock=\"a b\" id=x$\n> OK queue=mail job=x due_ms=1500\n"
	       "< DEFER mail \"\"$\n> OK queue=mail job=made-1 due_ms=0\n=\n");
	ck_assert_int_eq(redlock_defer(c, "mail", bytes("one two"), &options, NULL), 0);
	ck_assert_int_eq(redlock_defer(c, "mail", bytes(""), NULL, id), 0);
	ck_assert_str_eq(id, "made-1");
	ends();
}

TEST(take_asks_CHECK_and_keeps_the_payload)
{
	const struct redlock_options options = {.size = sizeof(options), .wait_ms = REDLOCK_FOREVER, .ttl_ms = 4000};
	struct redlock_job job;
	int64_t before = redlock_now_us();

	begins("< TAKE mail wait=forever ttl=4000ms$\n> OK queue=mail job=x attempt=2 valid_ms=1 ttl_ms=4000 name=l fence=7 payload=\"a\\x00b\"\n"
	       "< CHECK mail job=x$\n> OK queue=mail job=x attempt=2 valid_ms=3900\n< DONE x queue=mail$\n> OK queue=mail job=x\n"
	       "< RETRY x queue=mail delay=10ms$\n> ERR NOTHELD gone\n=\n");
	ck_assert_int_eq(redlock_take(c, "mail", &options, &job), 0);
	ck_assert_str_eq(job.id, "x");
	ck_assert_str_eq(job.lock, "l");
	ck_assert_int_eq(job.attempt, 2);
	ck_assert_int_eq(job.fence, 7);
	ck_assert_int_eq(job.ttl_ms, 4000);
	ck_assert_int_ge(job.until_us, before + 3900000);
	ck_assert_uint_eq(job.payload_n, 3);
	ck_assert_int_eq(memcmp(job.payload, "a\0b", 4), 0);
	free(job.payload);
	ck_assert_int_eq(redlock_done(c, "mail", job.id), 0);
	ck_assert_int_eq(redlock_retry(c, "mail", job.id, 10), REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(c), "NOTHELD");
	ends();
}

TEST(take_that_gets_nothing_tells_so)
{
	struct redlock_job job;

	begins("< TAKE mail$\n> BUSY queue=mail retry_ms=20\n< TAKE mail$\n> OK queue=mail job=x attempt=1 valid_ms=9 ttl_ms=10 payload=a\n"
	       "< CHECK mail job=x$\n> ERR LOST reason=quorum\n=\n");
	ck_assert_int_eq(redlock_take(c, "mail", NULL, &job), REDLOCK_BUSY);
	ck_assert_int_eq(redlock_take(c, "mail", NULL, &job), REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(c), "LOST");
	ends();
}

TEST(what_is_too_long_or_empty_is_not_sent)
{
	static char much[PAYLOAD_MAX + 2];
	const struct redlock_deferral no_lock = {.size = sizeof(no_lock), .lock = ""}, long_id = {.size = sizeof(long_id), .id = much};
	struct redlock_job job;

	memset(much, 'x', sizeof(much) - 1);
	begins("=\n");
	ck_assert_int_eq(redlock_defer(c, "", bytes("x"), NULL, NULL), -EINVAL);
	ck_assert_int_eq(redlock_defer(c, "q", bytes("x"), &no_lock, NULL), -EINVAL);
	ck_assert_int_eq(redlock_defer(c, "q", bytes("x"), &long_id, NULL), -EINVAL);
	ck_assert_int_eq(redlock_defer(c, "q", bytes(much), NULL, NULL), -EMSGSIZE);
	ck_assert_int_eq(redlock_take(c, "", NULL, &job), -EINVAL);
	ends();
}

/* Nobody else knows that the session has the job, and with grace the session lives on. */
TEST(take_asks_CHECK_again_when_the_connection_broke)
{
	struct scripted_session s;
	struct redlock_job job;

	scripted_session_open(&s, HELLO "< TAKE mail$\n> OK queue=mail job=x attempt=1 valid_ms=9000 ttl_ms=9000 payload=a\n< CHECK mail job=x$\n"
	                      "+\n" RESUME "> * queue=mail job=x attempt=1 valid_ms=8000\n> OK session=7 n=1\n"
	                      "< CHECK mail job=x$\n> OK queue=mail job=x attempt=1 valid_ms=8000\n"
	                      "< CHECK mail job=x$\n> OK queue=mail job=x attempt=1 valid_ms=8000\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_take(s.c, "mail", NULL, &job), 0);
	ck_assert_str_eq(job.id, "x");
	free(job.payload);
	scripted_session_end(&s);
}

#define TAKEN(JOB) "> OK queue=mail job=" JOB " attempt=1 valid_ms=9000 ttl_ms=9000 payload=a\n"

#define STILL_HAD "< CHECK mail job=x$\n> OK queue=mail job=x attempt=1 valid_ms=8000\n"

/* Whatever the daemon gave for the TAKE whose answer was lost, it gives again; and as long as it does not know whether the job is held, it is asked again. */
TEST(take_goes_on_over_the_next_connection)
{
	struct scripted_session s;
	struct redlock_job job;

	scripted_session_open(&s, HELLO "< TAKE mail wait=5000ms ttl=9000ms$\n+\n" RESUME "> OK session=7 n=0 open=1\n< TAKE mail wait=\n"
	                      "> ERR UNAVAILABLE it is being adopted\n< TAKE mail wait=\n" TAKEN("x") STILL_HAD QUIT, PATIENCE);
	ck_assert_int_eq(redlock_take(s.c, "mail",
			&(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 5000, .ttl_ms = 9000}, &job), 0);
	ck_assert_str_eq(job.id, "x");
	free(job.payload);
	scripted_session_end(&s);
}

TEST(take_that_does_not_wait_goes_on_as_well)
{
	struct scripted_session s;
	struct redlock_job job;

	scripted_session_open(&s, HELLO "< TAKE mail$\n+\n" RESUME "> OK session=7 n=0\n< TAKE mail$\n" TAKEN("x") STILL_HAD "< TAKE mail$\n+\n" RESUME
	                      "> OK session=7 n=0\n< TAKE mail$\n> BUSY queue=mail\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_take(s.c, "mail", NULL, &job), 0);
	free(job.payload);
	ck_assert_int_eq(redlock_take(s.c, "mail", NULL, &job), REDLOCK_BUSY);
	scripted_session_end(&s);
}

/* The daemon answers TAKE after RESUME with a job about which it has heard nothing. */
TEST(after_RESUME_each_job_that_is_known_is_checked_before_the_next_TAKE)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< TAKE mail$\n" TAKEN("x") "< TAKE mail$\n" TAKEN("y") "< TAKE mail$\n" TAKEN("z") "< DONE y queue=mail$\n"
	                      "> OK queue=mail job=y\n< TAKE mail$\n+\n" RESUME "> * queue=mail job=z attempt=1 valid_ms=8000\n> OK session=7 n=2\n"
	                      "< CHECK mail job=z$\n> ERR LOST reason=quorum\n< CHECK mail job=x$\n> OK queue=mail job=x attempt=1 valid_ms=8000\n"
	                      "< TAKE mail$\n" TAKEN("w") QUIT, PATIENCE);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(redlock_request(s.c, "TAKE mail", 0, NULL, NULL), 0);
	ck_assert_int_eq(redlock_done(s.c, "mail", "y"), 0);
	ck_assert_int_eq(redlock_request(s.c, "TAKE mail", 0, NULL, NULL), -ECONNABORTED);
	ck_assert_int_eq(redlock_request(s.c, "TAKE mail", 0, NULL, NULL), 0);
	scripted_session_end(&s);
}

TEST(a_job_that_was_lost_or_whose_session_is_gone_is_not_checked)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< TAKE mail$\n" TAKEN("x") "< TAKE mail$\n> ! LOST queue=mail job=x reason=quorum\n" TAKEN("y")
	                      "< PING$\n" GONE "< PING$\n> OK\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_request(s.c, "TAKE mail", 0, NULL, NULL), 0);
	ck_assert_int_eq(redlock_request(s.c, "TAKE mail", 0, NULL, NULL), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

/* Its caller would never know of it, and nobody else would get it as long as the session lives. */
TEST(a_job_that_redlock_take_could_not_tell_is_given_back_after_RESUME)
{
	struct scripted_session s;
	struct redlock_job job;

	scripted_session_open(&s, HELLO "< TAKE mail$\n" TAKEN("x") "< CHECK mail job=x$\n- 700\n+\n"
	                      RESUME "> OK session=7 n=1\n< CHECK mail job=x$\n> OK queue=mail job=x attempt=1 valid_ms=8000\n"
	                      "< RETRY x queue=mail failed=no$\n> OK queue=mail job=x\n< PING$\n> OK\n" QUIT, 300);
	ck_assert_int_lt(redlock_take(s.c, "mail", NULL, &job), 0);
	redlock_set_timeout(s.c, PATIENCE);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

TEST(what_is_no_job_and_no_grant_of_one_is_told_and_harms_nothing)
{
	struct redlock_grant grant;
	struct redlock_job job;

	begins("< TAKE mail$\n> BUSY queue=mail retry_ms=20\n< PING$\n> OK\n=\n");
	ck_assert_int_eq(redlock_job_grant(c, &grant), -EINVAL);
	ck_assert_int_eq(redlock_taken(c, &job), -EINVAL);
	ck_assert_int_eq(redlock_request(c, "TAKE mail", 0, NULL, NULL), REDLOCK_BUSY);
	ck_assert_int_eq(redlock_job_grant(c, &grant), -EINVAL);
	ck_assert_int_eq(redlock_taken(c, &job), -EINVAL);
	ck_assert_int_eq(redlock_ping(c), 0);
	ends();
}
