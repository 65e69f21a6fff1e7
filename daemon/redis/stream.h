/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream is what is said on one connection, without the connection: bytes out, bytes in. It shakes hands (AUTH, SELECT, SCRIPT LOAD),
 * then carries script calls. Replies come in the order of the commands, so the oldest command in flight owns the next one.
 * Calls are answered in the order in which they were made, except that those which came back NOSCRIPT are sent again.
 * Pure: time comes in, no socket is seen. The sink is called by stream_take and stream_close only, and may call stream_call.
 */
#ifndef REDIS_STREAM_H
#define REDIS_STREAM_H

#include "daemon/redis/flight.h"
#include "daemon/redis/script.h"

#define SHA_LENGTH 40

/* Shared by all streams of an upstream and owned by it. The credentials may be changed between handshakes. */
struct stream_conf {
	struct script_keys keys;
	char *user, *password; /* NULL: none */
	unsigned database;
};

struct stream {
	const struct stream_conf *conf;
	struct script_sink sink;
	unsigned node;
	bool ready; /* the handshake is done */
	struct resp resp;
	struct buf out; /* to be handed over; the owner consumes it */
	struct flight_store store;
	struct flight_list pending; /* collected, not yet flushed */
	struct flight_list flying;  /* flushed, not yet answered: oldest first */
	uint64_t handed;            /* bytes that the owner has taken out of `out` so far */
	struct instant last;        /* when something was put there last */
	char sha[SCRIPT_N][SHA_LENGTH + 1];
	char reason[256];
};

void stream_init(struct stream *s, const struct stream_conf *conf, unsigned node, const struct script_sink *sink);
void stream_release(struct stream *s); /* answers nothing */

void stream_open(struct stream *s, struct instant now);                     /* a new connection: the handshake stands in out */
void stream_call(struct stream *s, const struct call *call, uint64_t hash); /* hash stands for the name */
void stream_flush(struct stream *s, struct instant now);                    /* when ready: what was collected stands in out */
void stream_ping(struct stream *s, struct instant now);
void stream_consume(struct stream *s); /* all of out was taken */

/* NULL, or why this connection is of no use any more; then only stream_close makes sense. What is to be sent again stands in out. */
const char *stream_take(struct stream *s, const void *p, size_t n, struct instant now) __attribute__((warn_unused_result));

/*
 * The connection is gone, after the kernel took `taken` of the bytes. Calls of which it took not one are answered REFUSED, all others UNKNOWN.
 */
void stream_close(struct stream *s, uint64_t taken, const char *reason);

/* When the oldest command without an answer was sent; INSTANT_NEVER: none is in flight. */
struct instant stream_oldest(const struct stream *s);

#endif
