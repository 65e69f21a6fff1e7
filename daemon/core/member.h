/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Membership of the stores: a node's votes count only while it is joined, that is, while its marker is the one that this daemon
 * verified on this connection. A node that may have lost memory (restarted, flushed, replaced, evicting, its clock jumped) is in
 * quarantine until every lease that anybody may still believe has ended:
 *
 *   A  marker "j|cfg|run_id|replid|nonce|…" with our configuration and its present identity: joined
 *   B  anything else: compare-and-set to "q|cfg|run_id|replid|fresh nonce|…", wait G from then on
 *   C  after G, compare-and-set from exactly that value to "j|…|fresh nonce|…", which also lifts its fence above every token issued: by its clock,
 *      and above what this daemon has seen of it and of the others, where clocks were set back
 *
 * A second loss meanwhile changes the marker, so the compare-and-set of C fails: no ABA. Nor is it carried out later than a command may be: a snapshot
 * may bring that very value back, and a flush the blank store that trust_first_start saw. cfg is "<generation>.<hash>": a higher generation takes
 * over by B, another hash at the same generation is refused. trust_first_start: as long as this daemon has never reached a quorum, and no
 * node that it then reaches carries a marker, these are joined at once.
 *
 * What follows the nonce is for the generations to come: "bound|set|taken". A marker of an earlier version ends with the nonce.
 *   bound  the longest lease and lock-delay, ms, that may have been promised on a vote of this node when the marker was set. A new generation with a
 *          smaller max_lease waits for the old one. So does a node that lost its marker, as long as the other nodes' markers name a larger bound:
 *          until that bound has passed since the other configuration was last seen, and every node was seen under ours.
 *   set    how many nodes the set has, and a hash of its name
 *   taken  the set of the generation from which this node was taken over; '' if there was none. Another set may have nodes that we do not know. It
 *          has no quorum any more once half of its nodes are taken over, rounded up. Nobody who knows of it joins a node before that was so for G,
 *          and then names it in each marker. A node that was joined when nobody knew of it says nothing of that.
 *
 * A value of kind 'j' that takes the place of another sooner than a quarantine takes is evidence of lost memory: what was set back may stand at 'q' for a
 * daemon that has timed it before, and what was flushed may be new for one that has just been started.
 *
 * A clock that seems to jump is evidence of lost memory only once it is known that it was not this host that stood still: see jump.h.
 * See ALGORITHMS.md, Restart guard.
 */
#ifndef CORE_MEMBER_H
#define CORE_MEMBER_H

#include "daemon/core/admission.h"
#include "daemon/core/core.h"
#include "daemon/core/nodeset.h"
#include "daemon/core/flow.h"

enum member_state {
	MEMBER_DOWN,        /* no connection */
	MEMBER_PROBING,     /* connected; its marker is not verified yet, or it is not known yet whose clock jumped */
	MEMBER_QUARANTINED, /* counting G */
	MEMBER_JOINED,      /* its votes count */
	MEMBER_REFUSED,     /* must not be used; the reason says why and what to change. A quarantine that was begun is timed all the same */
};

/* What a store's clock was, as bounds of (server clock - CLOCK_BOOTTIME). */
struct clock_bounds {
	bool known;
	bool wide; /* a stop of ours was allowed for, of which no more is known than about how long it was */
	int64_t low, high; /* microseconds */
	struct instant at;
};

struct member_clock {
	bool known;
	int64_t low, high;
	struct instant at, sent;     /* of the last answer: when it was read, and asked for */
	struct instant sure;         /* since when it is known to have jumped, or that ours stood still: what was asked for before may tell of earlier */
	struct clock_bounds past[2]; /* what was known some seconds ago, the later first; see jump.h */
};

#define SET_ID_MAX 16 /* "<nodes>.<8 hex>" */

struct member {
	enum member_state state;
	bool connected;
	bool stalled; /* a call is unanswered for longer than the timeout; ends with the next answer */
	struct instant up_since; /* what went over an earlier connection was sent before … */
	int64_t astray_us;       /* … and is carried out, where it sets a key, so long after at most */
	int64_t width_us;        /* as long as this connection stands: how roughly the clock was known at worst when a key was to be set there */
	struct instant stalled_at;
	unsigned index;
	enum { MEMBER_IDLE, MEMBER_ASKED_PROBE, MEMBER_ASKED_JOIN } asked;
	struct instant asked_at;
	uint64_t asks; /* so many questions; the number of the last one is in its call */
	const char *marker; /* joined: what scripts pass; quarantined: the value that is being timed. In one of the texts, in turns: calls of this step point to it */
	char marker_text[2][MARKER_MAX];
	char offered[MARKER_MAX]; /* JOIN in flight: the new value */
	char run_id[48], replid[48];
	char reason[160];
	char taken[SET_ID_MAX]; /* of which set it was before ours; "" = none, or not known */
	bool ours;              /* its marker is of our configuration, as it was last seen */
	bool was_ours;          /* … or once was */
	bool clock_is_off; /* too far from the others' when it was looked at last */
	bool misconf;   /* a write was refused by -MISCONF since the last healthy probe */
	bool blank;     /* its last probe found no marker while trust was open, and nothing else the matter */
	const char *suspect; /* evidence of lost memory that the marker does not show */
	char suspected[MARKER_MAX]; /* the marker that a probe showed with it; "" = none, or it was no probe */
	char past[MARKER_MAX]; /* the last value of kind 'j' that a quarantine has replaced: whoever shows it again was set back, and has lost memory again */
	char over[MARKER_MAX]; /* the last value of kind 'q' that its joining has replaced: likewise, and who was cut off meanwhile may have timed it */
	/* The last value of kind 'j' under which it was used, when a question was asked that showed it, and the least that the store's clock was then. */
	char vouched[MARKER_MAX];
	struct instant vouched_at;
	int64_t vouched_us;
	char timed[MARKER_MAX];   /* the value of kind 'q' that is timed, and until when it is to stand: a connection that breaks does not begin it anew; its joining does */
	struct instant timed_since, quarantine_end;
	struct instant hear_until; /* after its quarantine the others are asked for their fences, until then at most; earlier than its end: not yet */
	char timed_why[160];
	char told[160]; /* what the log was told last, and of which state: once, not each second */
	enum member_state told_of;
	struct member_clock clock;
	struct {
		bool open;                  /* its clock jumped, or ours stood still: see jump.h */
		bool undone;                /* it was set back since: so it was its clock */
		bool allowed;               /* a stop of ours was found since, and is allowed for in `before` */
		struct clock_bounds before; /* what its clock was before that */
		struct instant seen;
		struct instant looked; /* at what the others have said, in the second half of their time; NEVER: not yet */
	} jump;
	struct flow flow;
	int64_t fence_seen, fence_when_asked;
	int64_t latest_us;    /* the latest that its clock ever was, as far as it was seen while joined */
	int64_t fence_joined; /* what a probe found last while it was joined; 0 in quarantine */
	int64_t evicted;
	int64_t rtt_us; /* smoothed; 0 = not known */
	struct instant timed_at; /* when rtt_us was last told anew */
	struct timer timer;
};

struct members {
	struct core *core;
	struct member node[NODES_MAX];
	char cfg[40], set_id[SET_ID_MAX];
	char elder[SET_ID_MAX]; /* the set of the generation before ours, if it is another; "" = not known */
	bool elder_is_over;     /* … and it has no quorum any more, for long enough: a marker of kind 'j' says so that knows of it */
	int64_t other_us;       /* the longest lease and delay of another configuration whose promises may run; see members_bound_us */
	struct instant other_until;
	int64_t fence_most; /* the largest fence that a node of ours showed before it was joined anew; see fences.h */
	bool trusting;      /* trust_first_start is still open */
	struct instant trust_until; /* waiting for the slower nodes to be probed */
	bool gained;        /* a node became usable: set here, cleared by who retries what waits for a quorum */
	/* Clock jumps seen now: by how much the votes of each node must be lowered. Cleared by who does it. */
	int64_t jump_us[NODES_MAX];
};

void members_init(struct members *ms, struct core *core);

void member_up(struct members *ms, unsigned node);
void member_down(struct members *ms, unsigned node, struct span reason);
void member_fired(struct members *ms, struct member *m);
/* The calls of the membership are told from all others by their ids. */
#define CALL_OF_MEMBER (UINT64_C(1) << 63)
static inline bool member_owns_call(uint64_t call)
{
	return (call & CALL_OF_MEMBER) != 0;
}

/* The id of the last question to this store. */
static inline uint64_t member_call(const struct member *m)
{
	return CALL_OF_MEMBER | m->asks;
}

bool member_answered(struct members *ms, const struct answer *a); /* false: nothing was asked */

/* A round gave up on it. */
void member_stall(struct members *ms, unsigned node);

/* It may be no more than a moment's stop: what can wait for it does, for as long as a command may take. */
bool member_may_recover(const struct members *ms, const struct member *m);

/* A key is to be set there now: how roughly the clock is known bounds how late that may happen. */
static inline void member_note_width(struct member *m, int64_t us)
{
	if (us > m->width_us)
		m->width_us = us;
}

static inline bool member_usable(const struct member *m)
{
	return m->state == MEMBER_JOINED && !m->stalled;
}

unsigned members_usable(const struct members *ms);
/* What a quorum has room for. Without a quorum there is nothing to wait for: a round may begin, and is told so at once. */
enum room members_room(const struct members *ms);
/* A quorum is usable, or will be as soon as the probes under way are answered: a moment's patience is better than a refusal that is wrong a moment later. */
bool members_promise_quorum(const struct members *ms);
/* Microseconds until enough quarantines end for a quorum, -1 when that is not what is missing. */
int64_t members_pending_us(const struct members *ms);
/* The longest lease and delay that may have been promised by anybody. */
int64_t members_bound_us(const struct members *ms);
/* A marker names that bound: quarantines under way last for it, too. */
void members_note_bound(struct members *ms, int64_t bound_us, bool ours);
/* Whether the set of the generation before ours, if that is another, has no quorum any more, and for long enough. */
bool members_have_taken_over(struct members *ms);
/* Why the others are not usable, for people: "2 in quarantine, 1 down". */
void members_tell_missing(const struct members *ms, char *text, size_t size);
/* The server's clock at `when`, in ms, as late as it may be; 0 if it is not known. */
int64_t member_server_ms(const struct member *m, struct instant when);
/* The same from now to `when`, as early as it may be: what it has not passed is not over by our clock either. */
int64_t member_server_ms_least(const struct member *m, struct instant when);
/* The round trip of the slowest usable store; 0 = not known. */
int64_t members_rtt_us(const struct members *ms);
/* How long a free lock is kept for the first waiter: it needs some round trips to hear of it and to ask. */
int64_t members_grace_us(const struct members *ms);
/* How long a round waits for the leading store before it asks the others as well. */
int64_t members_patience_us(const struct members *ms);
/*
 * What the clock of the stores, the Q-th most advanced one, showed at `when`, in microseconds. All daemons look at the same clocks, so their own may differ as
 * they like. As long as too few clocks are known it is this host's own.
 */
int64_t members_clock_us(const struct members *ms, struct instant when);
/* Which store is to be asked first for this name, -1 if none can be. The largest weight leads: all daemons agree, in whatever order they list the stores. */
int members_leader(const struct members *ms, struct span name);
uint64_t member_weight(struct span name, struct span run_id);
/* How far ahead of its clock a store's scripts let a fence run: see quorum.h. */
static inline int64_t members_ahead_us(const struct members *ms)
{
	return ms->core->conf.skew_us + 2 * ms->core->conf.clock_tol_us;
}
/* A quorum of stores says that it is earlier than this fence, which was granted, can have been: their clocks were set back since. See quorum.h. */
bool members_were_set_back(const struct members *ms, int64_t fence);
const char *member_state_word(enum member_state state);

#endif
