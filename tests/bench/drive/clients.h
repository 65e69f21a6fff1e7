/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that take a lock, hold it, free it, and begin anew, and what is measured meanwhile. A driver says how that is done: through a daemon, or at Redis
 * directly. One thread, see tests/load/gen.h. Times are in microseconds.
 */
#ifndef BENCH_CLIENTS_H
#define BENCH_CLIENTS_H

#include "tests/load/gen.h"

#include <stdint.h>

enum client_state {
	CLIENT_RESTING,   /* it wants nothing, until "go" */
	CLIENT_ASKING,
	CLIENT_PAUSING,   /* it was refused, and asks again later */
	CLIENT_HOLDING,
	CLIENT_RELEASING,
	CLIENT_YIELDING,  /* turns: it asks again when another has got the lock */
};

struct client {
	unsigned number, name;
	enum client_state state;
	int64_t asked_us; /* when it began to want the lock */
	int64_t due_us;   /* PAUSING, HOLDING: until then */
	uint64_t grants;
};

enum ending { END_RELEASE, END_LEAVE };

/* What was said on the command line. */
struct options {
	unsigned clients;
	unsigned names;                             /* 0: a name for each client */
	unsigned depth;                             /* requests in flight, of stream */
	int64_t hold_least_us, hold_most_us;
	int64_t pause_least_us, pause_most_us;      /* after a refusal */
	bool turns;
	enum ending ending;                         /* LEAVE: the client's connection ends while it holds the lock */
	const char *prefix;
};

struct driver {
	void (*open)(const struct options *o);
	void (*ask)(struct client *c);
	void (*release)(struct client *c);
	void (*leave)(struct client *c); /* ends its connection, and dials again */
};

struct client *client_at(unsigned number);

/* The driver calls these. */
void client_granted(struct client *c);
void client_refused(struct client *c);
void client_released(struct client *c);

/* Runs until the input ends. See main.c for the commands. */
void clients_run(const char *addresses, const struct options *o, const struct driver *driver);

/* One of these is the driver; stream has a loop of its own. */
extern const struct driver lines_driver, redis_driver;
void stream_run(const char *address, const struct options *o);

#endif
