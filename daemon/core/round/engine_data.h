/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine consists of: the value machines side by side. The files of the engine act on them; only the functions of move.h write their states. */
#ifndef CORE_ENGINE_DATA_H
#define CORE_ENGINE_DATA_H

#include "daemon/core/lock/kept_names.h"
#include "daemon/core/lock/notices.h"
#include "daemon/core/round/releases.h"
#include "daemon/core/round/round.h"
#include "daemon/core/round/tokens.h"

struct home_question;
TAILQ_HEAD(home_questions, home_question); /* home.h */

struct engine {
	struct core *core;
	struct members members;
	struct lock_table table;
	struct call_table calls;
	struct rounds rounds;
	struct releases releases;
	struct contenders no_quorum; /* those in CONTENDER_NO_QUORUM */
	struct leases risks;     /* those in LEASE_HELD of which RISK was told */
	struct leases adopting;  /* those in LEASE_ADOPTING */
	struct admission admission;
	struct timer admission_timer;
	uint32_t admitted;      /* how many that had waited for admission */
	struct instant retry_next; /* no release or withdrawal is repeated before this moment: see release_retry_at() */
	uint64_t tickets;
	uint32_t asked;         /* how many LOCKs */
	struct {
		uint32_t count;     /* how often a store came back. What was looked at since then has this number … */
		bool releases, leases, names; /* … and some outstanding releases, and leases and names that lack a quorum, have not */
		uint32_t asks;      /* admission.asks_later: the first number since: once no release has an earlier one, ASKs begin */
		bool due;           /* this step looks at some of them … */
		struct timer timer; /* … and the next one at others */
	} back;                 /* see engine_settle() */
	struct kept_names kept; /* names that were left taken */
	struct tokens tokens;   /* fencing tokens that were seen, and what may be asked for */
	struct {
		struct home_questions asked, told; /* sent; with an outcome that nobody has taken yet */
#define HOME_LINES 3
		/* To be sent as soon as the store can be asked: those that are urgent, those that only a joined store may answer, the others. */
		struct turns waiting[NODES_MAX][HOME_LINES];
		size_t waiting_n;
		bool odd[NODES_MAX]; /* the last one was of the second line: a flood in one of them does not keep the other waiting */
		unsigned tried;    /* of them in this step */
		struct {
			enum { NAME_UNKNOWN, NAME_ASKED, NAME_SAME, NAME_OTHER } is; /* whether the other daemons call the store as this one does */
			struct instant at;                                           /* when that was last learned, or asked without an answer */
			uint64_t marker; /* the store's then, as a hash: if it has another now, it may have forgotten its name */
		} name[NODES_MAX];
		uint32_t turn[NODES_MAX]; /* `admitted` when a question was sent to the store in place of a round that waited */
	} homes;
	int64_t fell_us[NODES_MAX]; /* the votes of this store end that much sooner: for those that keep votes of their own, see job.h. 0: they do not */
	bool fell;              /* so it is with some */
	bool falls;             /* leases whose votes fell have their timers as they were before, those from … */
	struct map_walk fall_walk; /* … on: see votes_fall.c */
	unsigned held;          /* leases in LEASE_HELD, of locks and of parts of permits */
	bool draining;          /* nothing new is granted: a drain, or the end */
	bool stopping;          /* the daemon ends now: what is not sent yet never is */
	unsigned watched;       /* how many sessions want to be told of waiters: see watch.h */
	struct notices notices;
	struct rng *rng;
};

void engine_init(struct engine *e, struct core *core);
void engine_release(struct engine *e);

#define RETRY_US (100 * MSEC) /* before a store is asked again that refused, was too busy or did not answer */
#define RETRY_APART_US 50     /* between two repeats of releases or withdrawals: so a store that refuses many costs only a few per cent of a core */

#define BACK_A_STEP 1024 /* of each kind */

static inline unsigned engine_quorum(const struct engine *e)
{
	return quorum_of(e->core->conf.nodes);
}

#endif
