/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that ask for permits: what they know, see permitter.c and permit_owner.c. */
#ifndef SIM_PERMITTER_H
#define SIM_PERMITTER_H

#include "daemon/base/heap.h"
#include "daemon/base/instant.h"
#include "proto/span.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

struct conn;
struct request_sim;
struct sim_client;

/* A permit that a client relies on, of one of the semaphores p0 … */
struct seating {
	bool live;
	bool asked;              /* its release was asked for: nothing revives the belief */
	int64_t name, limit, fence, owner; /* owner: 0: none is named */
	int64_t slot;
	struct instant deadline; /* by the client's clock */
	int64_t until;           /* in true time */
	int64_t promised;        /* true time until which nobody else may be granted its slot (S13), whether it is live or not */
};
#define SEMAPHORES   3
#define SEATINGS     6
#define SLOTS_MOST   6 /* of a semaphore, with a limit that is not its own */

struct permitting {
	struct timer timer;
	struct stream stream;
	struct conn *conn;       /* over which it asks */
	struct seating has[SEATINGS];
	struct stream owners;
};

/* permitter.c: permits of semaphores, in some worlds. */
void permitter_begin(struct sim_client *c);
void permitter_fired(struct sim_client *c);
int64_t permit_name(struct span line); /* the number of its name=; -1: no such name */
void permitter_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok);
void permitter_row(struct sim_client *c, const struct request_sim *q, struct span line); /* of RESUME */
void permitter_pushed(struct sim_client *c, struct span line);
void permitter_disclaim_all(struct sim_client *c);
void permitter_give_up(struct seating *s);
/* permit_owner.c: permits of several owners. */
int64_t permit_owner_draw(struct sim_client *c); /* of the next ACQUIRE */
const char *permit_owner_field(int64_t owner); /* "": none is named */
bool permit_owner_says(struct sim_client *c, const struct seating *s); /* something in the name of an owner; false: nothing */
void permit_owner_meets(struct sim_client *c); /* all that owners may have goes back */

#endif
