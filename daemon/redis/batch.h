/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch is one script call that carries one or many calls. Calls under one marker, and those that ignore the marker, share a call of the
 * batch script; PROBE, MARK, TABLE, HOME, NAMES and TELL are alone. The arguments are kept as RESP, so each call is formatted once, and sending is two
 * copies. A batch owns its memory and keeps it over batch_reset. Not thread-safe.
 */
#ifndef REDIS_BATCH_H
#define REDIS_BATCH_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"

#define BATCH_MAX 256

enum script_kind { SCRIPT_BATCH, SCRIPT_MARK, SCRIPT_PROBE, SCRIPT_TABLE, SCRIPT_HOME, SCRIPT_JOBS, SCRIPT_TELL, SCRIPT_N };

/* Arguments that all script calls of an upstream share. */
struct script_keys {
	char *prefix;    /* of the lock keys */
	char *slots;     /* of the keys of slots: see SLOT_PREFIX */
	struct buf head; /* the keys that every call begins with, as RESP */
	struct buf skew;  /* as RESP: skew_us, for MARK */
	struct buf ahead; /* as RESP: skew_us + tolerance_us, for the batch script */
};

void script_keys_init(struct script_keys *k, const char *prefix, int64_t skew_us, int64_t tolerance_us);
void script_keys_release(struct script_keys *k);

/* Arguments that calls of one moment usually share. They are written before the first entry that uses them, and again where they change. */
struct terms {
	int64_t px_ms, not_after_ms, reserve_ms;
};

struct entry {
	uint64_t id;
	uint64_t hash;        /* of the lock name */
	struct terms terms;
	uint32_t key_end;     /* end of the entry in keys */
	uint32_t arg, arg_end; /* the entry in args, without the terms in front of it */
	enum call_kind kind;
	char op;              /* of the batch script, 0: an entry of another script */
	uint8_t words;        /* HOME: the number of its arguments */
};

struct batch {
	enum script_kind script;
	struct entry *entry;
	unsigned count, cap;
	struct buf keys, args;
	unsigned words;     /* arguments in args */
	struct terms terms; /* the terms written last */
	bool termed;        /* terms were written */
	char marker[MARKER_MAX];
	size_t marker_n;
	bool marked; /* some entry depends on the marker */
};

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);

/* Whether the batch can take this call as well. An empty batch takes any call. */
bool batch_accepts(const struct batch *b, const struct call *call);
void batch_add(struct batch *b, const struct script_keys *k, const struct call *call, uint64_t hash);

/* Copies entry i of another batch, of the same script and marker. The terms are written anew where they differ. */
void batch_take(struct batch *b, const struct batch *from, unsigned i);

/* Appends the whole command: EVALSHA of sha, or EVAL of the text when sha is NULL. */
void batch_write(const struct batch *b, const struct script_keys *k, const char *sha, struct span text, struct buf *out);

#endif
