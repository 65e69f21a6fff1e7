/* SPDX-License-Identifier: BSD-2-Clause */
/* See wire.h. */
#include "tests/unit/wire.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define DEADLINE_S 20 /* by then a test has failed */

struct wire wire;

static void on_ready(void *context)
{
	(void)context;
	wire.readies++;
}

static void on_broken(void *context, const char *why)
{
	(void)context;
	wire.breaks++;
	(void)snprintf(wire.reason, sizeof(wire.reason), "%s", why);
	link_close(wire.link, wire.reason);
}

static void wire_begin(bool tcp)
{
	struct link_sink sink = {NULL, on_ready, on_broken, {&wire.answers, answers_add}};

	signal(SIGPIPE, SIG_IGN);
	wire = (struct wire){.base = event_base_new()};
	fake_start(&wire.fake, wire.base, tcp);
	wire.conf = (struct link_conf){.connect_timeout_us = 5 * SEC, .stall_us = 5 * SEC, .ping_us = 5 * SEC};
	script_keys_init(&wire.conf.stream.keys, "lock:", 60 * SEC, 0);
	wire.link = link_new(wire.base, &wire.conf, 0, &sink);
}

void wire_setup(void)
{
	wire_begin(false);
}

void wire_setup_tcp(void)
{
	wire_begin(true);
}

void wire_teardown(void)
{
	link_free(wire.link);
	fake_stop(&wire.fake);
	script_keys_release(&wire.conf.stream.keys);
	answers_release(&wire.answers);
	event_base_free(wire.base);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	*(bool *)context = true;
}

void wire_await(const unsigned *n, unsigned at_least, const char *what)
{
	struct timeval tv = {DEADLINE_S, 0};
	bool late = false;
	struct event *deadline = evtimer_new(wire.base, on_deadline, &late);

	evtimer_add(deadline, &tv);
	while (__atomic_load_n(n, __ATOMIC_RELAXED) < at_least && !late)
		event_base_loop(wire.base, EVLOOP_ONCE);
	event_free(deadline);
	ck_assert_msg(!late, "waited for %s: %u, not %u; %u broken: %s", what, *n, at_least, wire.breaks, wire.reason);
}

void wire_dial(void)
{
	ck_assert_int_eq(link_dial(wire.link, (struct sockaddr *)&wire.fake.address, wire.fake.address_n), 0);
}

void wire_dial_ready(void)
{
	unsigned before = wire.readies;

	wire_dial();
	AWAIT(wire.readies, before + 1);
	ck_assert_uint_eq(wire.breaks, 0);
}

void wire_acquire(uint64_t id)
{
	char name[32];
	struct call call = {.id = id, .kind = CALL_ACQUIRE, .value = SPAN("d:1:0"), .marker = SPAN("m"), .px_ms = 1000};

	call.name = (struct span){name, (size_t)snprintf(name, sizeof(name), "n%llu", (unsigned long long)id)};
	link_call(wire.link, &call, id);
}

void wire_acquire_now(uint64_t id)
{
	wire_acquire(id);
	link_flush(wire.link);
}
