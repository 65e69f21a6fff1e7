/* SPDX-License-Identifier: BSD-2-Clause */
/* See rig.h. */
#include "tests/unit/rig.h"
#include "tests/unit/loopback.h"

#include <check.h>
#include <stdlib.h>

#define DEADLINE_S 20 /* by then a test has failed */

struct rig rig;

static void on_up(void *context, unsigned node)
{
	(void)context;
	rig.ups++;
	rig.reason[node][0] = 0;
}

static void on_down(void *context, unsigned node, const char *reason)
{
	(void)context;
	rig.downs++;
	rig.answered_at_down = rig.answers.count;
	(void)snprintf(rig.reason[node], sizeof(rig.reason[node]), "%s", reason);
}

static void on_answer(void *context, const struct answer *answer)
{
	(void)context;
	answers_add(&rig.answers, answer);
}

void rig_begin(bool tcp)
{
	rig = (struct rig){0};
	signal(SIGPIPE, SIG_IGN);
	server_make(&rig.server, tcp);
	server_start(&rig.server, NULL);
	rig.base = event_base_new();
	rig.address[0] = (struct upstream_address){.label = "a"};
	if (tcp) {
		rig.address[0].host = loopback_name();
		rig.address[0].port = (uint16_t)rig.server.port;
	} else {
		rig.address[0].path = rig.server.path;
	}
	rig.conf = (struct upstream_conf){
		.address = rig.address,
		.nodes = 1,
		.links = 2,
		.key_prefix = "lock:",
		.connect_timeout_us = 5 * SEC,
		.stall_us = 10 * SEC,
		.ping_us = 10 * SEC,
		.skew_us = 60 * SEC,
	};
}

void rig_end(void)
{
	upstream_free(rig.upstream);
	server_remove(&rig.server);
	answers_release(&rig.answers);
	event_base_free(rig.base);
}

void rig_dial(void)
{
	static const struct upstream_sink sink = {.up = on_up, .down = on_down, .answer = on_answer};

	rig.upstream = upstream_new(rig.base, &rig.conf, &sink);
	ck_assert_uint_eq(rig.ups + rig.downs, 0);
}

void rig_up(void)
{
	rig_dial();
	rig_await(&rig.ups, rig.conf.nodes);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	*(bool *)context = true;
}

void rig_await(const unsigned *n, unsigned at_least)
{
	struct timeval tv = {DEADLINE_S, 0};
	bool late = false;
	struct event *deadline = evtimer_new(rig.base, on_deadline, &late);

	evtimer_add(deadline, &tv);
	while (__atomic_load_n(n, __ATOMIC_RELAXED) < at_least && !late)
		event_base_loop(rig.base, EVLOOP_ONCE);
	event_free(deadline);
	ck_assert_msg(!late, "%u, not %u; %u up, %u down (%s), %u answers", *n, at_least, rig.ups, rig.downs, rig.reason[0],
		      rig.answers.count);
}

void rig_run(int64_t us)
{
	struct timeval tv = {us / SEC, us % SEC};
	bool over = false;
	struct event *end = evtimer_new(rig.base, on_deadline, &over);

	evtimer_add(end, &tv);
	while (!over)
		event_base_loop(rig.base, EVLOOP_ONCE);
	event_free(end);
}

void rig_answered(uint64_t call)
{
	while (!answers_find(&rig.answers, call))
		rig_await(&rig.answers.count, rig.answers.count + 1);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what, (void)context;
	rig.readable++;
}

struct event *rig_watch(int fd)
{
	struct event *event = event_new(rig.base, fd, EV_READ, on_readable, NULL);

	event_add(event, NULL);
	return event;
}

struct call rig_make(enum call_kind kind, uint64_t id, const char *name)
{
	return (struct call){
		.id = id,
		.kind = kind,
		.name = span_of(name),
		.value = SPAN(RIG_VALUE),
		.new_value = SPAN(RIG_VALUE),
		.marker = kind == CALL_JOIN ? SPAN("") : SPAN(RIG_MARKER),
		.new_marker = SPAN(RIG_MARKER),
		.px_ms = 30000,
	};
}

void rig_send(const struct call *call)
{
	upstream_call(rig.upstream, call);
	upstream_flush(rig.upstream);
}

void rig_call_only(enum call_kind kind, uint64_t id, const char *name)
{
	struct call call = rig_make(kind, id, name);

	upstream_call(rig.upstream, &call);
}

void rig_call(enum call_kind kind, uint64_t id, const char *name)
{
	rig_call_only(kind, id, name);
	upstream_flush(rig.upstream);
}

void rig_expect(enum call_kind kind, uint64_t id, const char *name, char code)
{
	rig_call(kind, id, name);
	rig_answered(id);
	answers_check(&rig.answers, id, ANSWER_EXECUTED, code);
}

void rig_join(uint64_t id)
{
	rig_call(CALL_JOIN, id, "");
	rig_answered(id);
}

void rig_hold(void)
{
	rig_up();
	rig_join(1);
	rig_expect(CALL_ACQUIRE, 2, "held", 'G');
}

unsigned rig_server_count(const char *section, const char *field)
{
	const char *text = server_tell(&rig.server, "INFO %s", section), *at = strstr(text, field);

	ck_assert_msg(at != NULL, "%s in %s", field, text);
	return (unsigned)strtoul(at + strlen(field), NULL, 10);
}

void server_start_with_password(const char *const *option, const char *password)
{
	server_start(&rig.server, option);
	server_tell(&rig.server, "AUTH %s", password);
}
