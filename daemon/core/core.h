/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every part of the service shares: the configuration, the time of the event being handled, randomness, timers, the effects
 * being collected, the figures. No clock and no I/O can be reached from here.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "daemon/base/heap.h"
#include "daemon/base/rng.h"
#include "daemon/core/event.h"
#include "daemon/core/metric.h"

struct core_conf {
	unsigned nodes;               /* 1 .. NODES_MAX */
	const char *label[NODES_MAX]; /* of each node, for people */
	const char *store;            /* "memory", "redis" */
	bool foreign;                 /* clients that poll use the same names: give them their turn */
	bool shared;                  /* others than redlockd may write keys there */
	const char *set;              /* name of the node set: enters the configuration hash */
	uint64_t generation;
	const char *host;             /* announced in values */
	uint64_t seed[2];
	unsigned listed;              /* LIST of a table of more entries than that is answered in slices, see listing.h; 0: the usual */
	bool trust_first_start;       /* see member.h */
	bool tell_moves;              /* each change of state of a name is a line of the log, at level debug */
	int64_t timeout_us;           /* of one command on one node */
	unsigned window;              /* calls without an answer per node, see flow.h; 0: the usual */
	int64_t patience_us;          /* with those who leave, and with a join that is at hand; 0: timeout_us */
	int64_t lease_us, min_lease_us, max_lease_us, max_delay_us;
	int64_t max_grace_us;         /* the longest grace a session may ask for; 0 refuses it */
	bool rebooted;                /* what a store that is blank at the start has forgotten was promised before CLOCK_BOOTTIME began to count */
	int64_t past_lease_us;        /* a store may have forgotten a lease of that length, whatever max_lease is now */
	int64_t skew_us;              /* how far ahead of a store's clock a join lifts its fence: SKEW_US of quorum.h */
	int64_t clock_tol_us;         /* how far a store's clock may be off the others' median; 0: it is not looked at */
	struct {
		uint64_t locks, waiting; /* per session */
		uint64_t detached;       /* sessions without a connection; 0: without bound */
		uint64_t name, mistakes, line;
		uint64_t output; /* bytes that may be unsent to a session: rows of one answer fill a quarter of it; 0: without bound */
	} limits;
};

enum timer_kind { TIMER_LOCK, TIMER_CLAIM, TIMER_OP, TIMER_MEMBER, TIMER_ADMISSION, TIMER_SESSION, TIMER_GRACE, TIMER_LISTS };

/* Lines that come one per session or per lock: each kind has its own measure. */
enum burst_kind { BURST_LOST, BURST_HANGUP, BURST_REASSERTED, BURST_N };

struct core {
	struct core_conf conf;
	struct instant now;
	int64_t wall_us;
	struct rng rng;
	struct heap timers;
	struct effects *out; /* only while a step runs */
	bool journal_off;    /* EFFECT_JOURNAL cannot be carried out */
	struct metrics metrics;
	struct burst {
		struct instant until; /* end of the second that is being counted */
		unsigned said, left_out;
	} burst[BURST_N];
	char daemon_id[64];  /* "<16 hex>.<host>": random at each start, holds no ':' */
};

void core_init(struct core *c, const struct core_conf *conf);
void core_release(struct core *c);
/* An effect: one line for the log. The caller quotes nothing; values with blanks go through core_quoted. */
void core_log(struct core *c, enum log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Whether one more line about one session or one lock may be logged now: at most 20 a second, and a line that says how many were left out. */
bool core_may_log(struct core *c, enum burst_kind kind);
/* A value as a log line may carry it, in memory of the effects. */
const char *core_quoted(struct core *c, struct span value);
/* An effect: the call. Its spans must stay as they are until the effects are carried out. */
void core_call(struct core *c, const struct call *call);

/* A NUL-terminated copy in fixed memory, cut at size; from may overlap to. */
void core_keep(char *to, size_t size, struct span from);

static inline int64_t core_patience_us(const struct core *c)
{
	return c->conf.patience_us ? c->conf.patience_us : c->conf.timeout_us;
}

#endif
