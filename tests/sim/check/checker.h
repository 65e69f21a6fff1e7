/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker watches a world from outside and says which invariant it broke. It sees true time, every line, every call and every change of a key, and it never
 * changes anything. It counts votes and holds a second time, from what crosses the interface of the service. This file says what the checker knows; hooks.h
 * says who calls it. Each file of this folder checks one promise or a few related ones: the numbers S1 and so on are those of invariant.def.
 */
#ifndef SIM_CHECKER_H
#define SIM_CHECKER_H

#include "daemon/core/event/journal.h"
#include "tests/sim/client/client.h"
#include "tests/sim/world/link.h"

enum invariant {
	INVARIANT_NONE,
#define INVARIANT(id, ...) INVARIANT_##id,
#include "tests/sim/check/invariant.def"
#undef INVARIANT
	INVARIANT_N
};

struct invariant_row {
	const char *word;
	enum fault_class class;
	bool checked;
	const char *what;
};
extern const struct invariant_row invariant_table[INVARIANT_N];

struct violation {
	enum invariant what; /* NONE: no violation */
	int64_t at, name;    /* name: -1 if the violation concerns no name */
	char text[400];
};

/* A lease that was broken or at risk when the process was replaced: see carried.c. */
struct carried {
	bool unsure;
	struct instant until;     /* the deadline as it was */
	uint16_t renewed, denied; /* bits: what the nodes answered since */
};

/* The lease of one name at one daemon, as its calls and their answers show it. */
struct lease {
	uint64_t serial;  /* of its value */
	struct instant until[NODES_MAX];
	struct instant fell[NODES_MAX]; /* votes that an answer ended or shortened: their ends before the step that brought it, and that step */
	uint64_t fell_step[NODES_MAX];
	struct instant previous; /* the deadline of the last lease that was granted before this one */
	uint64_t value; /* as a hash */
	int64_t floor; /* the largest token that was returned before its first command was sent; an adopted lease has the floor of the lease it continues */
	bool held;
	int64_t ended_at;  /* true time when its last holder gave it up, or lost it */
	struct conn *conn; /* the holder's */
	int64_t owner, fence;
	int64_t base[NODES_MAX], reach[NODES_MAX]; /* the range of tokens that a node reserved for it; 0: none */
	bool unseen;                               /* it may have been granted to a session that has no connection */
	bool kept;                                 /* UNLOCK keep= left its key at the stores */
	int64_t delay_us;                          /* its lock-delay */
	bool adopted;                              /* from a previous run: its range is not known, it is not handed over */
	int64_t least_us, most_us;                 /* the shortest and the longest lease that was asked for, or renewed for, so far */
	bool renews, risked;                       /* its holder wants renewals; RISK was pushed */
	int64_t asked_us, asked_fence;             /* the lease that the holder of that token asked for last; 0: not known */
	uint64_t asked_step;
	int64_t low_since;                  /* true time since when so little is left that a renewal must have been missed; 0: enough is left */
	uint64_t over_step;                 /* in this step the old votes ended before an answer brought new ones: the lease may be lost all the same */
	int64_t overdue_since;              /* true time since when LOST is due; 0: it is not */
	unsigned portions;                  /* steps since then in which the daemon still set timers anew */
	unsigned grants;                    /* grants so far: each after the first is a hand-over */
	struct instant wanted;              /* when the daemon heard that another one wants it; 0: it did not */
	uint64_t failed;                    /* the last failed round that left votes behind, by the serial of its value */
	struct instant leftover[NODES_MAX]; /* until when its vote stands at the node; PAST: there is none, or its release was sent */
	uint16_t released;                  /* bits: nodes that a release of the present value was sent to */
	uint16_t renewing;                  /* bits: nodes with an unanswered renewal */
	uint16_t renewed;                   /* bits: nodes that were sent a renewal or a second round: an answer to an earlier command proves no vote */
	struct instant round;               /* when the last renewal was sent that some node denied */
	uint16_t denied;                    /* bits: the nodes that denied it, or have had it only since */
	bool broken;                        /* a node said that somebody has broken it */
	bool evicted;                       /* more nodes denied it than a quorum can do without */
	struct carried carried;
};

/* A ticket: the one that a daemon shows for a name, or the one of a queue place at a node. */
struct ticket {
	char text[96];
	size_t n;
	uint64_t step;               /* the step in which it was first shown */
	bool spent;                  /* a node granted a request that showed it */
	uint16_t nodes;              /* bits: nodes where it was shown and may be queued */
	int64_t shown_at[NODES_MAX]; /* true time when it was last shown there */
	int64_t empty_since;         /* true time since when the daemon has no waiters; 0: it has some */
	int64_t waits_since;         /* true time since when the daemon has waiters; 0: it has none */
	int64_t priority;            /* the highest of its waiters before this step */
	int64_t shown_us;            /* its moment, if it was shown in this step; else 0 */
	bool ranked;                 /* one of them had a priority since it was first shown */
};

#define TICKET_MS 3000 /* a queue place lasts so long */

struct place {
	struct ticket ticket;
	int64_t asked_ms, until_ms; /* by the node's clock */
};

/* What a daemon knows of a node from its answers. */
struct known_node {
	bool unjoined;                   /* it said that its marker differs, and was not probed since */
	bool jumped;                     /* its clock jumped ahead, and it was not joined anew since */
	bool fell;                       /* its fence fell, or it evicted keys, and it was not joined anew since */
	int64_t evicted;                 /* keys that it evicted so far */
	unsigned probes;                 /* probes under way; while another one is, an answer decides nothing: the other one will repeat it */
	char named[96];                  /* run_id and replication id in the last probe, in the form that a marker has; only run_id if its data is its own */
	int64_t fence, fence_when_asked; /* the largest fence that it has shown; the same when it was probed */
	int64_t fence_ever;              /* the largest that any server has shown there */
	uint64_t known_at;               /* the step before the one in which the daemon learned of the last change */
	uint64_t marker;                 /* marker of the last vote request, as a hash */
	bool timed;
	struct instant at; /* time of its last answer; upper bound of (its clock - CLOCK_BOOTTIME) by that answer */
	int64_t high;
	/*
	 * `high` from before the last stop of the daemon's host, plus that stop; 0: none, or the daemon has looked at the node since, and then asked it for a
	 * vote. When the clock shows less at first and this later, it was set back and put right: the votes from before last as long as they were counted.
	 */
	int64_t expected;
	struct instant stopped_at; /* the first answer behind that stop */
	bool looked;               /* a later command was answered */
	int64_t ahead_us, halted_us; /* at that time: how far its clock had been set forward in all, and how long the daemon's host had stood still */
};

/* A value that a daemon gave up and that still stands at a node which it can reach. */
struct leftover {
	uint64_t value; /* as a hash; 0: there is none */
	int64_t since;  /* true time when it was first seen */
};

/* The last values that a daemon released. */
#define RELEASED_MAX 256
struct released_values {
	uint64_t value[RELEASED_MAX]; /* as hashes */
	uint64_t run[RELEASED_MAX];   /* the run of the daemon that released it */
	unsigned count;
};

struct serial_flags {
	uint8_t *released; /* by serial of the value: a release was sent */
	size_t cap;
	uint64_t run;      /* the high bits of the serials of this run … */
	bool known;        /* … once it has made one */
};

/* The floors of the last leases of a name, by value: a lease that a later run adopts has the floor of its value. */
#define FLOORS_MAX 64
struct floors {
	uint64_t value[FLOORS_MAX]; /* as hashes */
	int64_t floor[FLOORS_MAX];
	unsigned count;
};

struct token_set {
	uint64_t *slot;
	size_t cap, count;
};

/* readers.c: all tokens of the names r0 … that were told, and the largest ones. */
struct read_tokens {
	struct read_token {
		int64_t name, fence;
		unsigned client;
		bool shared;
	} *item;
	size_t count, cap;
	int64_t largest[READ_NAMES], exclusive[READ_NAMES];
	int64_t shown_us[DAEMONS_MAX][READ_NAMES]; /* the ticket that the daemon has shown in this step; 0: none */
	int64_t let_in_at[DAEMONS_MAX][READ_NAMES]; /* when a store last let in readers of the daemon */
	int64_t released_at[DAEMONS_MAX][READ_NAMES]; /* when the daemon last gave up its hold, of whatever mode */
	int64_t delayed_until[READ_NAMES]; /* true time until which nobody is to have it, by a lock-delay or keep= … */
	const struct sim_daemon *delayed_by[READ_NAMES]; /* … of this daemon … */
	uint64_t delayed_run[READ_NAMES];  /* … in this run of it */
	int64_t alone_at[READ_NAMES]; /* when somebody last had it alone, as far as lines say; NEVER: nobody knows */
};

/* delays.c: by value, and by name and token. */
struct delays {
	struct delay_row {
		uint64_t key; /* 0: there is none */
		int64_t delay_us;
	} *row;
	size_t cap, count;
};

/* A job of the queues w0 …, see chores.c. */
struct chore {
	bool at, ever;        /* its home has it, as far as calls and answers tell; ever had it */
	bool stored;          /* its home has stored it */
	bool acknowledged;    /* its DEFER was answered OK */
	bool asked_done;      /* some client asked for its DONE or DROP */
	bool finished;        /* its home has it no more … */
	bool told_done;       /* … and each DONE and DROP that was carried out was answered OK */
	unsigned ends, oks;   /* DONEs and DROPs that were carried out; and that were answered OK */
	uint64_t nonce;       /* hash of that of the last DEFER that was carried out */
	bool missing;         /* its home lost its memory while it had it */
	bool again;           /* … after it had it: it may come back */
	int64_t attempt;      /* the last one that a client was told; 0: none since it was due as if it had never failed */
	int64_t changed_at;   /* true time when its home last got it, or had it no more, … */
	int64_t revived_at;   /* … or last stored it or made it due again, as if it had never failed */
};

struct checker {
	struct violation violation;
	struct lease lease[DAEMONS_MAX][NAMES_MAX];
	struct serial_flags serials[DAEMONS_MAX];
	struct known_node known_node[DAEMONS_MAX][NODES_MAX];
	struct instant jump_heard[DAEMONS_MAX]; /* when an answer last showed that more than one clock jumped, or that the host of the daemon stood still */
	struct released_values released[DAEMONS_MAX];
	struct leftover leftover[DAEMONS_MAX][NODES_MAX][NAMES_MAX];
	int64_t notice_at[DAEMONS_MAX], leftover_at[DAEMONS_MAX]; /* true time of the next look */
	int64_t awake_since[DAEMONS_MAX];                         /* true time since when the daemon runs without a stop */
	struct requests waiters[DAEMONS_MAX][NAMES_MAX];          /* LOCKs that the daemon has begun and not answered, in order */
	struct requests syncs;                                    /* UNLOCKs with sync=yes that began in this step and may not be carried out yet */
	struct token_set tokens;
	struct read_tokens read_tokens;
	int64_t slot_fence[SEMAPHORES][SLOTS_MOST]; /* the largest token of a grant of the slot */
	int64_t nests_at; /* true time of the next look */
	unsigned home[RATE_NAMES]; /* 1 + the server that counts the uses of that name; 0: none has yet */
	int64_t admitted[DAEMONS_MAX][RATE_NAMES]; /* what stores admitted for a daemon, less the OKs that it told */
	unsigned queue_home[CHORE_QUEUES]; /* 1 + the server that has stored chores of that queue; 0: none has yet */
	struct chore chore[CHORES_MAX];
	struct chore chore_was[CHORES_MAX]; /* chores_pass: as they were when the jobs of a memory store were last written */
	unsigned queue_home_was[CHORE_QUEUES];
	bool chores_pass;
	int64_t chores; /* how many clients have thought of */
	struct delays delays;
	struct floors floors[NAMES_MAX];
	int64_t had_at[CLIENTS_MAX][NAMES_MAX]; /* told.c: true time when it last held the name; INT64_MAX: it does; 0: it never did */
	int64_t returned[NAMES_MAX];   /* the largest token that was returned to a client */
	int64_t free_since[NAMES_MAX]; /* true time since when nobody holds it; INT64_MAX: somebody does */
	struct {
		int64_t fence, until;
	} delayed[NAMES_MAX];                        /* true time until which the lock-delay or keep= of a hold refuses the name to others */
	int64_t excused[NAMES_MAX];                  /* true time until which a key that was left behind may block the name */
	int64_t long_lived_ms[NODES_MAX][NAMES_MAX]; /* end of the key that stood at that node when its clock was set back; 0: none did */
	int64_t due[DAEMONS_MAX];                    /* true time when the next reply is due */
	struct ticket ticket[DAEMONS_MAX][NAMES_MAX];
	struct place place[NODES_MAX][DAEMONS_MAX][NAMES_MAX];
	int64_t detached_until[DAEMONS_MAX][NAMES_MAX];                      /* true time until which a session without a connection may still wait here */
	uint64_t step;                                                       /* steps of all daemons so far */
	uint64_t takes;                                                      /* times that a connection took a session, so far */
	bool unlocked[NAMES_MAX];                                            /* it is free, and an UNLOCK freed it */
	int64_t longest_free, longest_flapping, longest_woken; /* the longest times seen, to compare with the bounds */
};

bool fault_forgets(const struct fault *f); /* the server loses what it knew */
void checker_init(struct world *w);
void checker_release(struct world *w);
void checker_fail(struct world *w, enum invariant what, int64_t name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
