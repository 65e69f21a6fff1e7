/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam. Everything that happens to the service is an event; everything that it wants done is an effect.
 *
 * An event carries its own time and borrows its bytes for the length of service_step. Effects are collected in the order in
 * which they must be carried out, in memory that stays until effects_reset. Sessions, nodes and calls are named by numbers:
 *   session  chosen by the outer layer: slot in the low 32 bits (dense, small), generation in the high ones; never 0
 *   node     0 .. nodes-1, the order of the configuration
 *   call     chosen by the service; every call is answered exactly once by EVENT_ANSWER, whatever happens to its connection
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "daemon/base/arena.h"
#include "daemon/base/instant.h"
#include "daemon/base/log.h"
#include "daemon/base/peer.h"
#include "proto/span.h"

#define NODES_MAX 9
#define VALUE_MAX 128 /* bytes of a lock value: <daemon-id>:<ticket>:<32 hex> */
#define MARKER_MAX 256
#define PTTL_MOST_MS (INT64_MAX / 4 / MSEC) /* a key may last for longer than is told: times are reckoned in microseconds */

/*
 * What a store is asked. All but PROBE and JOIN are entries of one batch script; their keys are key_prefix + name.
 * RELEASE and WITHDRAW are carried out whatever the marker says: they only take away what is ours.
 */
enum call_kind {
	CALL_PROBE,   /* health and membership: see struct probe */
	CALL_JOIN,    /* compare-and-set of the marker: marker -> new_marker; lifts the fence to now + skew, or to `fence`, when new_marker starts with 'j' */
	CALL_ACQUIRE, /* take the key if it is free */
	CALL_EXTEND,  /* renew, raise the fence floor, adopt, re-assert, leave the key behind without a holder */
	CALL_RELEASE, /* delete if the value matches; wakes the first in line */
	CALL_WITHDRAW, /* leave the line of daemons that wait for the name */
	CALL_LOOK,     /* what stands at the key; changes nothing */
};

struct call {
	uint64_t id;
	unsigned node;
	enum call_kind kind;
	struct span name;       /* lock name, without the key prefix */
	struct span value;      /* the value that must stand there (ACQUIRE: that is put there) */
	struct span new_value;  /* EXTEND: the value afterwards; equal to value unless adopting */
	struct span prior;      /* EXTEND, RELEASE: further values that may stand there as well, separated by blanks; "" = none */
	struct span marker;     /* what the marker must be; JOIN: what it must be now ("" = absent) */
	struct span new_marker; /* JOIN */
	int64_t px_ms;          /* ACQUIRE, EXTEND: TTL of the key */
	int64_t fence;          /* ACQUIRE: proposal p; EXTEND, JOIN: floor, 0 = none */
	int64_t range;          /* ACQUIRE: K, tokens reserved beyond the first; EXTEND: not 0: the floor may be beyond the limit, see quorum.h */
	int64_t not_after_ms;   /* ACQUIRE, JOIN, and EXTEND of a missing key: server time beyond which it does nothing; 0 = none */
	bool create;            /* EXTEND: the key may be missing (re-assert) */
	bool exact;             /* EXTEND: the TTL is px_ms, once, even if the key would last longer (left behind); else a key never ends sooner than before */
	bool at_most;           /* with exact: a key that would end sooner does */
	struct span ticket;     /* ACQUIRE: join the line if it cannot be had, "" = do not; WITHDRAW: which */
	int64_t ticket_ms;      /* ACQUIRE: how long the place is kept unless refreshed */
	int64_t grace_ms;       /* ACQUIRE: how long a free lock is kept for an older ticket */
};

/* Was the call carried out? Yes; certainly not; nobody knows. */
enum answer_class { ANSWER_EXECUTED, ANSWER_REFUSED, ANSWER_UNKNOWN };

/*
 * What an executed call answered.
 *   ACQUIRE  G granted (fence = base)  B busy (holder, pttl)  W free, but kept for an older ticket  K a key of another type stands there (pttl)
 *            Q marker differs (holder = the marker)  L too late  F range beyond the limit: ask again for less (range 0 is never refused)
 *   EXTEND   E extended  A re-asserted  B other value (holder, pttl)  K other type  M missing  Q marker differs  F floor beyond the limit
 *   RELEASE  R released  N nothing of that value
 *   WITHDRAW X
 *   LOOK     M nothing stands there  B a value (holder, pttl)  K other type (pttl)  Q marker differs
 *   PROBE    P           (probe)
 *   JOIN     J done      X the marker was another (holder = the marker)  L too late (holder = the marker)
 */
struct probe {
	struct span marker;  /* "" = absent */
	struct span run_id, replid, version;
	struct span role;    /* "master", "slave" */
	struct span policy;  /* maxmemory_policy */
	int64_t maxmemory;
	int64_t evicted;     /* evicted_keys since its start */
	bool loading;
	bool own_data;       /* since it was started it took no data from another server; false: it did, or does not tell (before Redis 7.0) */
	bool bgsave_failed;  /* rdb_last_bgsave_status is not ok, or aof_last_write_status is not ok */
};

struct answer {
	uint64_t call;
	unsigned node;
	enum answer_class class;
	char code;            /* of an executed call; 0 otherwise */
	int64_t server_us;    /* the server's clock when it ran; 0 if not told */
	int64_t fence;        /* base of a grant, else the store's fence; -1 if not told */
	int64_t pttl_ms;      /* of the key that stands there, at most PTTL_MOST_MS; -1 never expires, -2 missing */
	struct span holder;   /* value or marker that stands there; of a value only its public part "<daemon-id>:<ticket>", "" if foreign */
	struct span text;     /* refused, unknown: why, for a person */
	const struct probe *probe;
};

enum event_kind {
	EVENT_TIME,      /* nothing but time passed */
	EVENT_OPEN,      /* a session begins */
	EVENT_LINE,      /* a line arrived, without its LF or CRLF; the bytes may be overwritten by the parser */
	EVENT_TOO_LONG,  /* a line was drained that exceeded the limit */
	EVENT_PARTING,   /* EOF or GONE will follow, but lines that were said before and are not read yet come first */
	EVENT_EOF,       /* half-close or close: no further line will come, replies may still be read */
	EVENT_SENT,      /* to EFFECT_AWAIT: most of what was sent to the session has gone out */
	EVENT_GONE,      /* the connection is no more */
	EVENT_NODE_UP,   /* connected, authenticated, scripts loaded */
	EVENT_NODE_DOWN, /* no connection; its calls in flight are answered, by events of their own, before this one */
	EVENT_ANSWER,
	EVENT_WOKEN,     /* a store published: the lock was freed, and this daemon is first in line */
	EVENT_WANTED,    /* a store published: another daemon waits for a lock of ours */
	EVENT_STOP,      /* shut down: waiters are told, sessions hung up, nothing deleted in the stores */
	EVENT_RESTORE,   /* one record of the journal of the former life, in order, before any other event; only in the same boot, so that times compare */
	EVENT_RESTORED,  /* … and that was the last of them; not told when there is no former life */
	EVENT_JOURNAL,   /* what EFFECT_JOURNAL asks for cannot be done any more, or can again: see there */
};

struct event {
	enum event_kind kind;
	struct instant now; /* CLOCK_BOOTTIME, read for this event */
	int64_t wall_us;    /* CLOCK_REALTIME at the same moment */
	union {
		struct {
			uint64_t id;
			const struct peer *peer; /* OPEN */
			enum gone how;           /* GONE */
			char *line;              /* LINE */
			size_t n;
		} session;
		struct {
			unsigned index;
			struct span reason; /* DOWN */
		} node;
		struct {
			unsigned node;
			struct span name;
		} message; /* WOKEN, WANTED: may be lost, repeated, late */
		struct answer answer;
		struct {
			struct span record; /* RESTORE */
			bool ok;            /* JOURNAL */
		} journal;
	};
};

enum effect_kind {
	EFFECT_SEND,   /* bytes to a session */
	EFFECT_HANGUP, /* end the connection once what was sent has gone out; no event about this session follows */
	EFFECT_AWAIT,  /* asks for EVENT_SENT, once, as soon as little is unsent: requests of a session wait for its reader */
	EFFECT_READ,   /* stop (on = false) or resume reading lines; a hang-up is noticed all the same */
	EFFECT_CALL,
	EFFECT_LOG,    /* one line for the log: event word, then key=value text */
	/*
	 * One record (journal.h) to append. All of a pass are written, with one write, before any EFFECT_SEND of that pass is carried out, so a
	 * lease that was handed on is never adopted by its former holder. If that fails, the file is made worthless (emptied, or removed) before any
	 * of those EFFECT_SEND, and EVENT_JOURNAL ok=false follows: no more records come, and no lease that has one is handed on locally. EVENT_JOURNAL
	 * ok=true is told when a snapshot (service_snapshot) stands in a file that can be appended to.
	 */
	EFFECT_JOURNAL,
};

struct effect {
	enum effect_kind kind;
	union {
		struct {
			uint64_t session;
			struct span bytes;
		} send;
		struct {
			uint64_t session;
			struct span reason;
		} hangup;
		struct {
			uint64_t session;
		} await;
		struct {
			uint64_t session;
			bool on;
		} read;
		struct call call;
		struct {
			struct span record;
		} journal;
		struct {
			enum log_level level;
			const char *event;
			struct span text;
		} log;
	};
};

struct effects {
	struct effect *item;
	size_t count, cap;
	struct arena arena; /* everything that the items point to */
};

void effects_init(struct effects *e);
void effects_release(struct effects *e);
void effects_reset(struct effects *e);
struct effect *effects_add(struct effects *e, enum effect_kind kind);

#endif
