/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch is one script call with one or many calls in it: RELEASE, and ACQUIRE and EXTEND under one marker, share a call of the batch
 * script; PROBE and JOIN stand alone. Its arguments are kept as RESP from the start, so that a call is formatted once and
 * sending is two copies. Owns its memory and keeps it over batch_reset.
 */
#ifndef REDIS_BATCH_H
#define REDIS_BATCH_H

#include "daemon/base/buf.h"
#include "daemon/core/event.h"

#define BATCH_MAX 256

enum script_kind { SCRIPT_BATCH, SCRIPT_JOIN, SCRIPT_PROBE, SCRIPT_N };

/* What all script calls of an upstream have in common. */
struct script_keys {
	char *prefix;    /* of the lock keys */
	char *queue;     /* of the keys of their queues */
	struct buf head; /* the marker key and the fence key, as RESP */
	struct buf skew;  /* as RESP: JOIN */
	struct buf ahead; /* as RESP: skew and tolerance, all others */
};

void script_keys_init(struct script_keys *k, const char *prefix, int64_t skew_us, int64_t tolerance_us);
void script_keys_release(struct script_keys *k);

struct entry {
	uint64_t id;
	uint64_t hash;             /* of the name: the same name has the same hash */
	uint32_t key_end, arg_end; /* where its part of keys and args ends */
	enum call_kind kind;
};

struct batch {
	enum script_kind script;
	struct entry *entry;
	unsigned count, cap;
	struct buf keys, args;
	char marker[MARKER_MAX];
	size_t marker_n;
	bool marked; /* some entry depends on the marker */
};

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);

/* May this call join the ones that are there? Any call may be the first. */
bool batch_accepts(const struct batch *b, const struct call *call);
void batch_add(struct batch *b, const struct script_keys *k, const struct call *call, uint64_t hash);

/* Copies entry i of another batch of the same script and marker. */
void batch_take(struct batch *b, const struct batch *from, unsigned i);

/* Appends the whole command: EVALSHA of sha, or EVAL of the text when sha is NULL. */
void batch_write(const struct batch *b, const struct script_keys *k, const char *sha, struct span text, struct buf *out);

#endif
