/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A net on an event base, listening on a private Unix socket and a loopback port, with a sink that writes down what it is told:
 * "open 0.1" (slot.generation), "line 0.1 PING", "toolong 0.1", "eof 0.1", "gone 0.1 hangup", a line each. Nothing here sleeps:
 * the loop runs until what is expected has happened, or the test fails after 10 s.
 */
#ifndef UNIT_NET_WORLD_H
#define UNIT_NET_WORLD_H

#include "daemon/base/buf.h"
#include "daemon/base/peer.h"
#include "daemon/net/net.h"

#include <event2/event.h>
#include <stdbool.h>

struct world {
	struct event_base *base;
	struct net *net;
	struct buf told;
	struct peer peer; /* of the last one that was opened */
	uint64_t session; /* likewise */
	unsigned long opened, lines;
	bool inside; /* a callback is running */
	bool quiet;  /* counts, and writes nothing down */
	char folder[64], path[96];
	uint16_t port;
	int epoll; /* of the base */
	/* Called for each line, after it was written down. */
	void (*on_line)(struct world *w, uint64_t session, const char *line);
	void (*on_end)(struct world *w, uint64_t session); /* at whatever else is told but open and gone */
	void (*on_writing)(struct world *w);               /* before bytes leave */
	void *data;
};

#define WORLD_CONF                                                                                                               \
	((struct net_conf){.line_max = 64, .output_max = 4 * 1024 * 1024, .sessions_max = 100, .keepalive_us = INT64_C(60000000)})

void world_init(struct world *w, struct net_conf conf);
void world_release(struct world *w);

int world_unix(struct world *w); /* a client, connected; blocking */
int world_tcp(struct world *w);
void world_resets(int fd); /* closes a TCP client with RST */

void world_pass(struct world *w);                       /* one pass of the loop, waiting at most 10 ms, and net_flush */
void world_settle(struct world *w);                     /* passes until nothing is ready */
void world_told(struct world *w, const char *expected); /* waits for all of it, fails on anything else; forgets it */
void world_says(struct world *w, int fd, const char *text);
void world_hears(struct world *w, int fd, const char *text); /* the client reads exactly that */
void world_drains(struct world *w, int fd, size_t n);        /* the client reads n bytes, whatever they are */
void world_eof(struct world *w, int fd);                     /* the client reads what is left, then EOF, and no error */
void world_at_rest(struct world *w); /* nothing was told, and the kernel has nothing to report: no busy loop */

#define world_until(w, condition)                                                                                                \
	do {                                                                                                                     \
		double until_ = world_clock() + 10;                                                                              \
		while (!(condition)) {                                                                                           \
			ck_assert_msg(world_clock() < until_, "never: %s", #condition);                                          \
			world_pass(w);                                                                                           \
		}                                                                                                                \
	} while (0)

double world_clock(void); /* seconds */

#endif
