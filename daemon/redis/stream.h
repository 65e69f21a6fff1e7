/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream is the protocol of one connection without its socket: bytes in, bytes out. It begins with the handshake (AUTH, SELECT, INFO, EVAL, SCRIPT LOAD),
 * then carries script calls. Replies come in the order of the commands, so the next reply belongs to the oldest command in flight.
 * Calls are answered in the order in which they were made, except for those that are sent again after NOSCRIPT.
 * Pure: no clock, no socket. Only stream_take and stream_close call the sink, which may call stream_call.
 */
#ifndef REDIS_STREAM_H
#define REDIS_STREAM_H

#include "daemon/redis/batch.h"
#include "daemon/redis/resp.h"
#include "daemon/redis/script.h"
#include <sys/queue.h>

#define SHA_LENGTH 40

/* A flight is one command to a server. A stream has pending flights (not flushed yet), flights without an answer, and spare ones. */
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

/* Owned by the upstream, shared by all its streams. The credentials may change between handshakes. */
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
	bool masters_only; /* the handshake fails at a replica */
	bool asks_info; /* the handshake failed because a command is missing, and INFO is asked what the server is */
	enum defect defect; /* why the connection is unusable */
	struct resp resp;
	struct buf out; /* bytes to send; the owner takes some of them and calls stream_consume */
	struct flight_store store;
	struct flight_list pending; /* collected, not flushed yet */
	struct flight_list flying;  /* in flight: flushed, not answered yet, oldest first */
	uint64_t handed;            /* bytes of this connection that the owner has taken from out */
	struct instant last;        /* when a command was last appended to out */
	struct instant answered;    /* when the last answered command was appended: the server was alive then, or later */
	char run_id[48];            /* of the server; "": not given */
	char sha[SCRIPT_N][SHA_LENGTH + 1];
	char reason[256];
};

void stream_init(struct stream *s, const struct stream_conf *conf, unsigned node, const struct script_sink *sink);
void stream_release(struct stream *s); /* answers no calls */

void stream_open(struct stream *s, struct instant now);                     /* a new connection: puts the handshake into out */
void stream_call(struct stream *s, const struct call *call, uint64_t hash); /* hash: of the lock name */
void stream_flush(struct stream *s, struct instant now);                    /* if ready: puts the collected calls into out */
void stream_ping(struct stream *s, struct instant now);
void stream_consume(struct stream *s, size_t n); /* the owner has taken n bytes of out */

/* Handles input. NULL, or why the connection is unusable; then only stream_close may follow. Calls that are sent again are appended to out. */
const char *stream_take(struct stream *s, const void *p, size_t n, struct instant now) __attribute__((warn_unused_result));

/* The connection has ended after the kernel took `taken` bytes of it. A call is answered REFUSED if the kernel took none of its bytes, else UNKNOWN. */
void stream_close(struct stream *s, uint64_t taken, const char *reason);

/* Whether no call is unanswered or collected, and all bytes were taken out of `out`. Only PINGs may be unanswered. */
bool stream_is_quiet(const struct stream *s);
/* When the oldest command in flight was sent; INSTANT_NEVER: none is in flight. */
struct instant stream_oldest(const struct stream *s);

#endif
