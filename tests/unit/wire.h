/* SPDX-License-Identifier: BSD-2-Clause */
/* One link to a fake server on one event base, and what its sink was told: for link_test.c and stall_test.c. */
#ifndef UNIT_WIRE_H
#define UNIT_WIRE_H

#include "daemon/redis/link.h"
#include "tests/unit/answers.h"
#include "tests/unit/fake.h"

#include <event2/event.h>

struct wire {
	struct event_base *base;
	struct fake fake;
	struct link_conf conf; /* all times are five seconds; may be changed until the link is dialled */
	struct link *link;     /* closed as soon as it breaks */
	struct answers answers;
	unsigned readies, breaks;
	char reason[256]; /* of the last break */
};

extern struct wire wire;

void wire_setup(void);
void wire_setup_tcp(void);
void wire_teardown(void);

void wire_dial(void);
void wire_dial_ready(void);
void wire_acquire(uint64_t id); /* of a name of its own; collected only */
void wire_acquire_now(uint64_t id);

/* Runs the loop until *n is at least that; fails the test when that takes too long. */
void wire_await(const unsigned *n, unsigned at_least, const char *what);
#define AWAIT(n, at_least) wire_await(&(n), at_least, #n)

#endif
