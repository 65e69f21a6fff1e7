/* SPDX-License-Identifier: BSD-2-Clause */
/* An upstream on an event base, one real Redis server of its own, and what the sinks were told: for upstream_test.c and outage_test.c. */
#ifndef UNIT_RIG_H
#define UNIT_RIG_H

#include "daemon/redis/script.h"
#include "daemon/redis/upstream.h"
#include "tests/unit/answers.h"
#include "tests/unit/server.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RIG_MARKER "j|cfg|run|repl|nonce"
#define RIG_VALUE  "d1:7:00ff00ff00ff00ff00ff00ff00ff00ff"

struct rig {
	struct event_base *base;
	struct server server;
	struct upstream_address address[NODES_MAX];
	struct upstream_conf conf; /* may be changed until rig_up or rig_dial */
	struct upstream *upstream;
	struct answers answers;
	unsigned ups, downs, readable;
	unsigned answered_at_down; /* how many answers there were when it was told last */
	char reason[NODES_MAX][256];
};

extern struct rig rig;

void rig_begin(bool tcp); /* a server that is up, nothing dialled */
void rig_end(void);
void rig_dial(void);
void rig_up(void); /* dial, and wait until all nodes are up */

/* Runs the loop until *n is at least that; fails the test when that takes too long. */
void rig_await(const unsigned *n, unsigned at_least);
void rig_answered(uint64_t call);
void rig_run(int64_t us);        /* runs the loop for so long: for what must not happen meanwhile */
struct event *rig_watch(int fd); /* counts rig.readable once */

struct call rig_make(enum call_kind kind, uint64_t id, const char *name); /* the name is borrowed */
void rig_send(const struct call *call);                                   /* and flush */
void rig_call(enum call_kind kind, uint64_t id, const char *name);        /* make, send and flush */
void rig_call_only(enum call_kind kind, uint64_t id, const char *name);   /* no flush */
void rig_expect(enum call_kind kind, uint64_t id, const char *name, char code);
void rig_hold(void);        /* up, joined (call 1), and "held" acquired (call 2) */
void rig_join(uint64_t id); /* from no marker to RIG_MARKER, answered */

unsigned rig_server_count(const char *section, const char *field); /* a number of INFO */
void server_start_with_password(const char *const *option, const char *password);

#endif
