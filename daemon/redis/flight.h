/* SPDX-License-Identifier: BSD-2-Clause */
/* A flight is one command to a server. A stream has pending flights (not flushed yet), flights without an answer, and spare ones. */
#ifndef REDIS_FLIGHT_H
#define REDIS_FLIGHT_H

#include "daemon/redis/batch.h"
#include <sys/queue.h>

enum flight_kind { FLIGHT_AUTH, FLIGHT_SELECT, FLIGHT_ROLE, FLIGHT_EVAL, FLIGHT_LOAD, FLIGHT_WHAT, FLIGHT_PING, FLIGHT_SCRIPT };

struct flight {
	TAILQ_ENTRY(flight) next;
	enum flight_kind kind;
	struct batch batch; /* SCRIPT: the calls; LOAD: only batch.script counts */
	struct instant sent;
	uint64_t begin; /* bytes of this connection before the first byte of this command */
	bool again;     /* sent again as EVAL, after NOSCRIPT */
};

TAILQ_HEAD(flight_list, flight);

/* Spare flights keep their buffers, so a steady load allocates nothing. */
struct flight_store {
	struct flight_list spare;
	unsigned spares;
};

void flight_store_init(struct flight_store *s);
void flight_store_release(struct flight_store *s);
struct flight *flight_get(struct flight_store *s, enum flight_kind kind);
void flight_put(struct flight_store *s, struct flight *f);
void flight_put_all(struct flight_store *s, struct flight_list *list);

/* Whether a flight of the list carries an entry for the name of this hash. */
bool flight_list_names(const struct flight_list *list, uint64_t hash);

#endif
