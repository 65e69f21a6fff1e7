/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch is one script call that carries one or many calls. Calls under one marker, and those that ignore the marker, share a call of the batch script. PROBE,
 * MARK, TABLE, HOME and PUBLISH are alone. In the batch script releases come first, then acquires, then all others, in any order. Two calls
 * about one name keep their order. The arguments are kept as RESP: each call is formatted once, and sending copies them. A batch owns its memory and keeps it
 * over batch_reset. Not thread-safe.
 */
#ifndef REDIS_BATCH_H
#define REDIS_BATCH_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"

#define BATCH_MAX 256

enum script_kind { SCRIPT_BATCH, SCRIPT_MARK, SCRIPT_PROBE, SCRIPT_TABLE, SCRIPT_HOME, SCRIPT_JOBS, SCRIPT_PUBLISH, SCRIPT_N };

/* Arguments that all script calls of an upstream share. */
struct script_keys {
	char *prefix;    /* of the lock keys */
	char *slots;     /* of the keys of slots: see SLOT_PREFIX */
	struct buf head; /* the keys that every call begins with, as RESP */
	struct buf skew;  /* as RESP: skew_us, for MARK */
	struct buf ahead; /* as RESP: skew_us + tolerance_us, for the batch script */
	struct buf id;    /* as RESP: PROBE publishes to the channel of the daemon with this id */
};

void script_keys_init(struct script_keys *k, const char *prefix, int64_t skew_us, int64_t tolerance_us, const char *id);
void script_keys_release(struct script_keys *k);

struct terms {
	int64_t px_ms, not_after_ms, reserve_ms, ticket_ms;
};

struct entry {
	uint64_t id;
	uint64_t hash; /* of the lock name */
	struct terms terms;
	int64_t fence, range;  /* of an acquire: the token it proposes, and how many more it may take */
	uint32_t key_end;      /* end of the entry in keys */
	uint32_t arg, arg_end; /* the entry in args, without the terms before it */
	uint32_t ticket_end;   /* of an acquire: end of its ticket in tickets */
	enum call_kind kind;
	char op;       /* of the batch script, 0: an entry of another script */
	uint8_t words; /* HOME: the number of its arguments */
};

enum batch_part { BATCH_RELEASES, BATCH_ACQUIRES, BATCH_OTHERS, BATCH_PARTS };

#define BATCH_FILTER 16 /* words of 64 bits: a filter of the names in a batch */

struct batch {
	enum script_kind script;
	unsigned count; /* of all parts */
	struct {
		struct entry *entry;
		unsigned count, cap;
		struct buf keys, args;
	} part[BATCH_PARTS];
	struct buf tickets, notes; /* of the acquires: see lua/free.lua */
	unsigned words;            /* arguments of the others */
	struct terms terms;        /* of the others: the terms that were written last */
	bool termed;               /* terms were written */
	uint64_t released[BATCH_FILTER], named[BATCH_FILTER]; /* filters: names of releases; of all others */
	int64_t seen;              /* the largest fence of the store that a call has seen */
	char marker[MARKER_MAX];
	size_t marker_n;
	bool marked; /* some entry depends on the marker */
};

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);
/* Frees each buffer of an empty batch that is larger than this. */
void batch_trim(struct batch *b, size_t bytes);

/* Whether the batch can take this call as well. An empty batch takes any call. */
bool batch_accepts(const struct batch *b, const struct call *call);
void batch_add(struct batch *b, const struct script_keys *k, const struct call *call, uint64_t hash);

/* The i-th entry, in the order in which the script answers them. */
const struct entry *batch_entry(const struct batch *b, unsigned i);

/* Copies entry i of another batch of the same script and marker. Writes the terms anew where they differ. */
void batch_take(struct batch *b, const struct batch *from, unsigned i);

/* Appends the whole command: EVALSHA of sha, or EVAL of the text when sha is NULL. */
void batch_write(struct batch *b, const struct script_keys *k, const char *sha, struct span text, struct buf *out);

#endif
