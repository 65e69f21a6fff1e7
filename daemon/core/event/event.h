/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface: events, effects, the calls to stores and their answers, names, and sets of stores. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "daemon/base/arena.h"
#include "daemon/base/instant.h"
#include "daemon/base/log.h"
#include "daemon/base/map.h"
#include "daemon/base/peer.h"
#include "proto/defect.h"
#include "proto/span.h"

#include <string.h>

/*
 * The interface of the service: whatever happens to it is an event, and whatever it wants done is an effect.
 *
 * An event carries its own time; its bytes are borrowed during service_step. Effects are collected in the order in which they
 * must be carried out, in memory that is valid until effects_reset. Sessions, nodes and calls have numbers:
 *   session  chosen by the outer layer: slot in the low 32 bits (dense, small), generation in the high ones; never 0
 *   node     0 .. nodes-1, the order of the configuration
 *   call     chosen by the service; every call is answered exactly once by EVENT_ANSWER, even if its connection breaks
 */

#define NODES_MAX 9
#define AUTH_TEXT_MAX 4096 /* bytes of user and secret together; longer ones count as wrong */
#define VALUE_MAX 128 /* bytes of a lock value: <daemon-id>:<number>:<32 hex> */
#define RATE_WINDOW_MAX (INT64_C(31) * 24 * 3600 * SEC) /* microseconds of the longest window of a rate limit */
#define JOB_ID_MAX 64     /* bytes */
#define JOB_TEXT_MAX (33 << 10) /* bytes of queue, lock and payload of a job together */
#define PEER_MAX 160      /* bytes of the printed name of a peer: see session_origin */
#define MARKER_MAX 256
/*
 * A name with this prefix is not a client's: it is the slot of a semaphore, with the key "redlockd:<key_prefix>s:" and the rest of the name. Names of clients
 * may contain any byte. So one that begins with NAME_ESCAPE has that byte twice wherever slots have names as well: in the table of names, the journal, and
 * the calls and messages about locks. Its key has it once.
 */
#define SLOT_PREFIX   "\001s:"
#define NAME_ESCAPE   '\001'
#define SLOT_NAME_MAX 528 /* bytes of the longest */
#define PTTL_MOST_MS (INT64_MAX / 4 / MSEC) /* a longer TTL is reported as this, so that its microseconds fit int64_t */

/*
 * The calls to a store. All but PROBE and MARK are entries of one batch script; their keys are key_prefix + name. RELEASE and WITHDRAW ignore the marker,
 * because they only remove our own values and tickets.
 */
enum call_kind {
	CALL_PROBE,   /* health and membership: see struct probe */
	CALL_MARK,    /* compare-and-set of the marker: marker -> new_marker; lifts the fence to now + skew, or to `fence`, when new_marker starts with 'j' */
	CALL_ACQUIRE, /* take the key if it is free */
	CALL_EXTEND,  /* renew, raise the fence floor, adopt, re-assert, leave the key without a holder */
	CALL_RELEASE, /* delete the key if the value matches; wakes the first ticket of the queue */
	CALL_WITHDRAW, /* remove the ticket from the queue of the name */
	CALL_LOOK,     /* read the key; changes nothing */
	CALL_BREAK,    /* take the key from its holder by force: see lua/break.lua */
	CALL_TABLE,    /* write rows into the wait table, and read those of all daemons: see lua/table.lua. It has no name */
	CALL_HOME,     /* a question to the home of a rate limit or of a queue, whose name it has: see home.h and lua/home.lua */
	CALL_PUBLISH,  /* publish a message for another daemon: see lua/publish.lua. It has no name */
};

/* How an ACQUIRE or an EXTEND stores its value in the key, and where a RELEASE looks for it: see lua/shares.lua. */
enum form {
	FORM_ALONE,  /* the value is the whole key; a RELEASE need not look for it among shares */
	FORM_SHARED, /* it has a share of the key, beside others */
};

struct call {
	uint64_t id;
	unsigned node;
	enum call_kind kind;
	struct span name;       /* lock name, without the key prefix */
	/*
	 * The value that the key must have; ACQUIRE: the value to set; BREAK: what to break, "" asks what is there; TABLE: the rows, see lua/table.lua; HOME:
	 * the operation and its arguments, see netstring.h; PUBLISH: the message
	 */
	struct span value;
	struct span new_value;  /* EXTEND: the value afterwards; equal to value unless adopting */
	struct span marker;     /* what the marker must be; MARK: before the call ("" = absent) */
	struct span new_marker; /* MARK */
	int64_t seen;           /* the largest fence that this daemon has seen at the store: a smaller one now shows that the store lost data; 0 = none */
	int64_t px_ms;          /* ACQUIRE, EXTEND: TTL of the key */
	int64_t fence;          /* ACQUIRE: proposal; EXTEND, MARK: floor, 0 = none */
	int64_t range;          /* ACQUIRE: number of tokens reserved beyond the first */
	int64_t not_after_ms;   /* ACQUIRE, MARK, and EXTEND of a missing key: server time after which the call does nothing; 0 = none */
	bool beyond;            /* EXTEND: the floor may exceed the limit, see members.h */
	bool create;            /* EXTEND: the key may be missing (re-assert) */
	/* EXTEND, to leave the key: the TTL becomes px_ms even if it was longer; a repetition only lowers it. Otherwise the TTL never shrinks */
	bool exact;
	bool at_most;           /* with exact: the TTL never grows */
	uint8_t form;           /* ACQUIRE, EXTEND, RELEASE: enum form */
	/*
	 * ACQUIRE: the ticket to queue if the key is not granted, EXTEND of a share: in any case, "" = none; WITHDRAW: to remove; TABLE: the id of this
	 * daemon; HOME: what this daemon calls the store; PUBLISH: the id of the receiving daemon.
	 */
	struct span ticket;
	int64_t ticket_ms;      /* ACQUIRE, EXTEND: how long the ticket stays queued unless refreshed; TABLE: the same for a member */
	int64_t reserve_ms;     /* ACQUIRE: how long a free key is reserved for an older ticket */
};

/* Whether the call was carried out: yes; certainly not; unknown. */
enum answer_class { ANSWER_EXECUTED, ANSWER_REFUSED, ANSWER_UNKNOWN };

/*
 * The codes of an executed call.
 *   ACQUIRE  G granted (fence = base)  B busy (found, pttl)  W free, but reserved for an older ticket  K a key of another type (pttl)
 *            S shares are there, and this one may not join them (found, pttl). G of a share: found = since when a writer waits, by its ticket, "" = no writer
 *            Q marker differs (found = the marker; "": there is none, or the fence is smaller than `seen`)
 *            L too late  F range beyond the limit (range 0 is never refused)
 *   EXTEND   E extended  A re-asserted  B other value (found, pttl)  X our value, but broken  K other type  M missing  Q marker differs
 *            F floor beyond the limit  S extended, beside other shares (found = the older ticket of a writer)
 *            E of a share: found as with G
 *   RELEASE  R released  N no key of that value
 *   WITHDRAW X done
 *   LOOK     M missing  B a value (found, pttl)  S shares (found, pttl)  K other type (pttl)  Q marker differs
 *   BREAK    X broken (pttl)  R deleted, as no redlockd wrote it  M missing  B something else (found, pttl)  K other type (pttl)  Q marker differs
 *   TABLE    T done (found = number of the exchange, blank, members of the others)  Q marker differs
 *   HOME     Q marker differs  N the store has another name (found)  H its name is that of the call, or it has none  else see the operation (found)
 *   PUBLISH     T done (found = number of receivers)  Q marker differs
 *   PROBE    P           (probe)
 *   MARK     J done      X marker differs (found = the marker)  L too late (found = the marker)
 */
struct probe {
	struct span marker;  /* "" = absent */
	struct span run_id, replid, version;
	struct span role;    /* "master", "slave" */
	struct span policy;  /* maxmemory_policy */
	int64_t maxmemory;
	int64_t evicted;     /* evicted_keys since its start */
	bool loading;
	bool own_data;       /* it took no data from another server since its start; false: it did, or does not say (before Redis 7.0) */
	bool unsaved;        /* no append-only file, and no snapshot, or only one older than changes of hours ago; false: it saves to disk, or does not say */
	/* The first command that it refuses now, and why: see lua/probe.lua; "" = none. It begins with a blank if no command is concerned. */
	struct span refusal;
	bool lesser;         /* … which locks do not need */
	enum defect defect;    /* … the defect that it shows */
	struct span called;  /* the name that the first daemon gave it, see home.h; "" = none yet */
};

struct answer {
	uint64_t call;
	unsigned node;
	enum answer_class class;
	bool unsent;          /* refused: the daemon could not send it, so the store has not answered */
	char code;            /* of an executed call; 0 otherwise */
	int64_t server_us;    /* the server's clock when the call ran; 0 if unknown */
	int64_t fence;        /* base of a grant, else the store's fence; -1 if unknown */
	int64_t pttl_ms;      /* remaining TTL of the key, at most PTTL_MOST_MS; -1 never expires, -2 missing */
	/*
	 * B: the public part "<daemon-id>:<number>:<12 hex>" of the present value, with "!" in front if it was broken; "" if no redlockd wrote it. LOOK: the
	 * same, then a blank and the first ticket of the queue, if there is one; also with K and M. BREAK: "#…" for a foreign value, and nothing for "!". Q,
	 * and MARK: the marker.
	 */
	struct span found;
	struct span text;     /* refused, unknown: the reason, for people; ACQUIRE: why its ticket was not queued */
	enum defect defect;     /* … as one word, if it is an error of the server; DEFECT_NONE: the server did not answer */
	const struct probe *probe;
};

/* Of B: the public part of the value. */
static inline struct span answer_holder(const struct answer *a)
{
	const char *blank = a->found.n > 0 ? memchr(a->found.p, ' ', a->found.n) : NULL;

	return (struct span){a->found.n > 0 ? a->found.p : "", blank ? (size_t)(blank - a->found.p) : a->found.n};
}

enum event_kind {
	EVENT_TIME,      /* time passed */
	EVENT_OPEN,      /* a session begins */
	EVENT_LINE,      /* a line arrived, without its LF or CRLF; the bytes may be overwritten by the parser */
	EVENT_TOO_LONG,  /* a line exceeded the limit and was dropped; the event has the first part of it */
	EVENT_HALF_CLOSED,   /* half-closed: EOF or GONE will follow, after lines that are not read yet */
	EVENT_EOF,       /* end of input: no further line will come, replies may still be read */
	EVENT_SENT,      /* answer to EFFECT_AWAIT: most of the output of the session is written */
	EVENT_GONE,      /* the connection has ended */
	EVENT_NODE_UP,   /* connected, authenticated, scripts loaded */
	EVENT_NODE_DOWN, /* not connected; EVENT_ANSWER comes first for all its calls in flight */
	EVENT_ANSWER,
	EVENT_WOKEN,     /* a store published: the lock was freed, and this daemon's ticket is the first */
	EVENT_WANTED,    /* a store published: another daemon waits for our lock */
	EVENT_BROKEN,    /* a store published: another daemon has broken our lock, or one that we had */
	EVENT_DUE,       /* a store published: a job of the queue of that name is due */
	EVENT_QUESTION,  /* a store published: another daemon asks who holds one of our locks. The name of the message is its text, see claim.h */
	EVENT_CARD,      /* a store published: another daemon answers who holds one of its locks. The name is the text here, too */
	EVENT_RULES,     /* service_reload() has brought rules that were read again */
	EVENT_STOP,      /* shut down: waiters are refused, sessions are hung up, and nothing is deleted at the stores */
	EVENT_RESTORE,   /* one journal record of the previous run, in order, before any other event; only in the same boot, so that times compare */
	EVENT_RESTORED,  /* after the last EVENT_RESTORE; omitted if there was no previous run */
	EVENT_JOURNAL,   /* EFFECT_JOURNAL can no longer be carried out, or can be again: see there */
	EVENT_VERIFIED,  /* answer to EFFECT_VERIFY */
	EVENT_SUBSCRIBED, /* whether a store publishes for this daemon: the reason says why it refuses to, and is "" when it does again. May be repeated */
	/* Whether sentinels confirm that a store is still the master, or its name leads to it alone: the reason says why not, or is "". May be repeated. */
	EVENT_UNWATCHED,
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
			char *line;              /* LINE, TOO_LONG */
			size_t n;
		} session;
		struct {
			unsigned index;
			struct span reason; /* DOWN, SUBSCRIBED, UNWATCHED */
			enum defect defect;   /* … its defect */
			/*
			 * If sentinels give the address of the server. UP: that address; UNWATCHED: "", or that address; DOWN: "", or the address of the
			 * server that has replaced it.
			 */
			struct span address;
		} node;
		struct {
			unsigned node;
			struct span name;
		} message; /* WOKEN, WANTED, BROKEN, DUE, QUESTION, CARD: may be lost, repeated, late */
		struct answer answer;
		struct {
			uint64_t number;
			bool ok;
		} verified;
		struct {
			struct span record; /* RESTORE */
			bool ok;            /* JOURNAL */
		} journal;
	};
};

enum effect_kind {
	EFFECT_SEND,   /* bytes to a session */
	EFFECT_HANGUP, /* end the connection once its output is written; no event about this session follows */
	EFFECT_AWAIT,  /* asks for one EVENT_SENT as soon as little is unsent; the requests of the session wait for it */
	EFFECT_READ,   /* stop (on = false) or resume reading lines; a hang-up is noticed in either case */
	EFFECT_CALL,
	EFFECT_VERIFY, /* asks whether this is the secret of that user: EVENT_VERIFIED answers. One is under way at a time. The outer layer wipes the secret */
	EFFECT_AUDIT,  /* one line of the audit log, without its beginning: see client.h */
	EFFECT_LOG,    /* one line for the log: event word, then key=value text */
	/*
	 * One record (journal.h) to append. The outer layer appends all records of a pass by one write, before any EFFECT_SEND or call to a server of that
	 * pass leaves. So the earlier holder of a lease that was handed over never adopts it. If the write fails, the file is emptied or removed before
	 * anything leaves, and EVENT_JOURNAL ok=false follows. From then on the service makes no records except for a snapshot (service_snapshot), and hands
	 * over no lease that has one. EVENT_JOURNAL ok=true follows when a snapshot was written to a file that can be appended to.
	 */
	EFFECT_JOURNAL,
};

#define HANGUP_HTTP "http"

struct effect {
	enum effect_kind kind;
	union {
		struct {
			uint64_t session;
			struct span bytes;
		} send;
		struct {
			uint64_t session;
			struct span reason; /* HANGUP_HTTP: first send an answer in HTTP */
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
			struct span text;
		} audit;
		struct {
			uint64_t number;
			struct span user;
			char *secret;
			size_t secret_n;
		} verify;
		struct {
			struct span record;
			bool first; /* it is written before any call that follows it is carried out, also by the memory store */
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
	struct arena arena; /* owns everything that the items point to */
};

void effects_init(struct effects *e);
void effects_release(struct effects *e);
void effects_reset(struct effects *e);
void effects_grow(struct effects *e); /* the slow path of effects_add */

/* The caller must fill in the whole member of that kind: it is not cleared, because a call is large and an answer is small. */
static inline struct effect *effects_add(struct effects *e, enum effect_kind kind)
{
	struct effect *item;

	if (e->count == e->cap)
		effects_grow(e);
	item = &e->item[e->count++];
	item->kind = kind;
	return item;
}

/* A set of stores, by their numbers. A plain value: pass it and compare it as one. */

struct nodeset {
	uint16_t bits;
};

_Static_assert(NODES_MAX <= 16, "a set has a bit for each store");

#define NODESET_NONE ((struct nodeset){0})

/* The stores 0 .. nodes-1. */
static inline struct nodeset nodeset_all(unsigned nodes)
{
	return (struct nodeset){(uint16_t)((1u << nodes) - 1)};
}

static inline struct nodeset nodeset_of(unsigned node)
{
	return (struct nodeset){(uint16_t)(1u << node)};
}

static inline bool nodeset_has(struct nodeset s, unsigned node)
{
	return s.bits >> node & 1;
}

static inline bool nodeset_any(struct nodeset s)
{
	return s.bits != 0;
}

/* Sets are small. The builtin is a function call unless the target processor is known to count bits. */
static inline unsigned nodeset_count(struct nodeset s)
{
	unsigned count = 0;

	for (unsigned rest = s.bits; rest; rest &= rest - 1)
		count++;
	return count;
}

static inline struct nodeset nodeset_or(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits | b.bits};
}

static inline struct nodeset nodeset_and(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits & b.bits};
}

static inline struct nodeset nodeset_without(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){(uint16_t)(a.bits & ~b.bits)};
}

static inline void nodeset_add(struct nodeset *s, unsigned node)
{
	*s = nodeset_or(*s, nodeset_of(node));
}

static inline void nodeset_remove(struct nodeset *s, unsigned node)
{
	*s = nodeset_without(*s, nodeset_of(node));
}

/* A name at the stores, whatever has that name. Calls, releases and notices refer to it, and it lives as long as one does. */

struct name {
	struct map_node node;
	char *text;             /* follows the struct in which the name is embedded; a long one is on the heap. See NAME_ESCAPE */
	unsigned refs;          /* calls and notices that are about it */
	unsigned releases;      /* of this name, waiting for admission */
	uint16_t n;
	struct nodeset put_off; /* stores that were too busy to be sent a release: our dead value may still be there */
};

static inline struct span name_text(const struct name *x)
{
	return (struct span){x->text, x->n};
}

/* The text as the client gave it: see NAME_ESCAPE. The name of a slot is unchanged. */
static inline struct span name_unescaped(struct span text)
{
	return text.n > 1 && text.p[0] == NAME_ESCAPE && text.p[1] == NAME_ESCAPE ? (struct span){text.p + 1, text.n - 1} : text;
}

#endif
