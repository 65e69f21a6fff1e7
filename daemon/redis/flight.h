/* SPDX-License-Identifier: BSD-2-Clause */
/* A flight is one command on its way to a server. A link has those that wait for the flush, those in flight, and spare ones. */
#ifndef REDIS_FLIGHT_H
#define REDIS_FLIGHT_H

#include "daemon/redis/batch.h"
#include <sys/queue.h>

enum flight_kind { FLIGHT_AUTH, FLIGHT_SELECT, FLIGHT_LOAD, FLIGHT_PING, FLIGHT_SCRIPT };

struct flight {
	TAILQ_ENTRY(flight) next;
	enum flight_kind kind;
	struct batch batch; /* SCRIPT; LOAD: only which script */
	struct instant sent;
	uint64_t begin; /* how many bytes this connection was given before its first one */
	bool again;     /* sent a second time, as EVAL */
};

TAILQ_HEAD(flight_list, flight);

/* Flights keep their buffers while they are spare, so that a steady load allocates nothing. */
struct flight_store {
	struct flight_list spare;
	unsigned spares;
};

void flight_store_init(struct flight_store *s);
void flight_store_release(struct flight_store *s);
struct flight *flight_get(struct flight_store *s, enum flight_kind kind);
void flight_put(struct flight_store *s, struct flight *f);
void flight_put_all(struct flight_store *s, struct flight_list *list);

/* Does one of them carry an entry for this name? */
bool flight_list_names(const struct flight_list *list, uint64_t hash);

#endif
