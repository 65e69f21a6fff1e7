/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/main/pump.c: the timer of the service, also where its next deadline lies before the clock began; what the journal is told; and answers of
 * Redis servers, which take no longer than others can wait. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

#include <check.h>
#include <poll.h>

#define AT_ONCE_MS 1000 /* by the clock of the machine, which may be busy */

static struct daemon d;

static void setup(void)
{
	static const struct core_conf conf = {.label = {"a"},
					      .host = "h",
					      .store = "redis",
					      .set = "set",
					      .nodes = 1,
					      .generation = 1,
					      .timeout_us = 50 * MSEC,
					      .lease_us = SEC,
					      .max_lease_us = SEC};
	static const struct net_conf net_conf = {.line_max = 512, .output_max = 4096, .sessions_max = 1, .connections_max = 1};
	static const struct net_sink silent;

	log_set_level(LOG_ERROR);
	d = (struct daemon){.base = event_base_new(), .service = service_new(&conf)};
	d.net = net_new(d.base, &net_conf, &silent);
	ck_assert_ptr_nonnull(d.net);
	ck_assert_int_eq(pump_start(&d), 0);
}

static void teardown(void)
{
	pump_stop(&d);
	net_free(d.net);
	service_free(d.service);
	event_base_free(d.base);
}

/* The service probes its store, and waits for the answer from that moment on. Returns the number of that call. */
static uint64_t a_store_is_up_at(int64_t us)
{
	struct event event = {.kind = EVENT_NODE_UP, .now = {us}};
	uint64_t call = 0;

	ck_assert_int_eq(service_step(d.service, &event, &d.effects), 0);
	for (size_t i = 0; i < d.effects.count; i++)
		if (d.effects.item[i].kind == EFFECT_CALL)
			call = d.effects.item[i].call.id;
	effects_reset(&d.effects);
	return call;
}

static bool timer_rings(int within_ms)
{
	struct pollfd timer = {.fd = d.timer_fd, .events = POLLIN};

	return poll(&timer, 1, within_ms) == 1;
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(what_was_due_before_the_clock_began_rings_at_once)
{
	(void)a_store_is_up_at(-3600 * SEC);
	pump_pass(&d);
	ck_assert(timer_rings(AT_ONCE_MS));
}

TEST(behind_what_was_long_overdue_the_next_deadline_is_armed)
{
	(void)a_store_is_up_at(-3600 * SEC);
	pump_pass(&d);
	ck_assert(timer_rings(AT_ONCE_MS));
	ck_assert_int_eq(event_base_loop(d.base, EVLOOP_ONCE), 0);
	(void)a_store_is_up_at(clock_boottime().us + 3600 * SEC);
	pump_pass(&d);
	ck_assert(instant_before(clock_boottime(), d.armed));
	ck_assert(instant_before(d.armed, INSTANT_NEVER));
	ck_assert(!timer_rings(0));
}

TEST(a_journal_that_waits_for_its_next_try_is_told_how_much_there_would_be_to_write)
{
	struct peer peer = {0};
	struct event event = {.kind = EVENT_OPEN, .now = clock_boottime(), .session = {.id = 1, .peer = &peer}};

	d.journal = (struct journal){.dir = -1, .fd = -1, .unusable = true, .reported = true, .retry_at = INSTANT_NEVER};
	pump_pass(&d);
	ck_assert_uint_eq(d.journal.count, 0);
	ck_assert_int_eq(service_step(d.service, &event, &d.effects), 0);
	effects_reset(&d.effects);
	pump_pass(&d);
	ck_assert_uint_eq(d.journal.count, 1);
}

/* Nobody has asked for these: each takes a moment nevertheless. */
TEST(what_servers_answer_beyond_the_time_of_a_pass_is_heard_in_the_next_ones)
{
	const struct answer a = {.call = 1, .found = SPAN("found"), .text = SPAN("text")};
	struct instant begin = clock_boottime();
	unsigned passes = 0;

	while (!pump_is_behind(&d)) {
		ck_assert_int_lt(instant_diff(clock_boottime(), begin), 10 * SEC);
		pump_upstream_sink.answer(&d, &a);
	}
	for (unsigned i = 0; i < 100000; i++)
		pump_upstream_sink.answer(&d, &a);
	for (; pump_is_behind(&d); passes++)
		pump_pass(&d);
	ck_assert_uint_gt(passes, 1);
}

static void is_told_of_the_end(bool by_the_next_connection)
{
	if (by_the_next_connection)
		pump_upstream_sink.up(&d, 0, "");
	else
		pump_upstream_sink.down(&d, 0, DEFECT_CLOSED, "closed", "");
}

/* From the end of a connection on the service does not count what is still said about its probe. */
LOOP_TEST(what_a_server_has_answered_is_heard_before_its_connection_ends, 2)
{
	struct answer a = {.call = 1}, probed = {.call = a_store_is_up_at(clock_boottime().us), .class = ANSWER_UNKNOWN};

	while (!pump_is_behind(&d))
		pump_upstream_sink.answer(&d, &a);
	pump_upstream_sink.answer(&d, &probed);
	is_told_of_the_end(_i);
	while (pump_is_behind(&d))
		pump_pass(&d);
	ck_assert_int_eq(service_metrics(d.service)->value[METRIC_CALLS_UNKNOWN], 1);
}

LOOP_TEST(the_end_of_a_connection_with_many_calls_in_flight_takes_several_passes, 2)
{
	struct answer a = {.call = 1};
	unsigned passes = 0;

	while (!pump_is_behind(&d))
		pump_upstream_sink.answer(&d, &a);
	for (unsigned i = 0; i < 100000; i++)
		pump_upstream_sink.answer(&d, &a);
	is_told_of_the_end(_i);
	for (; pump_is_behind(&d); passes++)
		pump_pass(&d);
	ck_assert_uint_gt(passes, 1);
}

/* There may be another server by then, which has not been asked who it is. */
TEST(a_call_is_sent_to_no_connection_of_which_the_service_does_not_know_yet)
{
	struct answer a = {.call = 1};
	struct event up = {.kind = EVENT_NODE_UP};
	const struct answer *last;

	while (!pump_is_behind(&d))
		pump_upstream_sink.answer(&d, &a);
	is_told_of_the_end(false);
	is_told_of_the_end(true);
	pump_step(&d, &up); /* the service asks the server who it is */
	last = &d.answers.event[d.answers.end - 1].answer;
	ck_assert_int_eq(d.answers.event[d.answers.end - 1].kind, EVENT_ANSWER);
	ck_assert(last->class == ANSWER_REFUSED && last->unsent);
}

/* The first call of the pass came long ago, since what came then took long. */
TEST(calls_of_the_memory_store_that_wait_go_on_however_long_the_rest_of_a_pass_takes)
{
	static const struct memory_conf memory_conf = {.run_id = "r"};
	struct instant now = clock_boottime();
	struct call call;

	d.memory = memory_new(&memory_conf);
	for (unsigned i = 0; i < 300; i++)
		backlog_add(&d.backlog, &(struct call){.id = 1 + i, .kind = CALL_LOOK, .name = SPAN("n")});
	d.wall_known = true;
	d.begun = instant_add(now, -5 * MSEC);
	d.calls_end = instant_add(now, -4 * MSEC);
	pump_pass(&d);
	backlog_begin_pass(&d.backlog, 1);
	ck_assert(!backlog_first(&d.backlog, &call) || call.id > 1);
	for (unsigned i = 0; pump_is_behind(&d); i++) {
		ck_assert_uint_lt(i, 300);
		pump_pass(&d);
	}
	memory_free(d.memory);
	d.memory = NULL;
}
