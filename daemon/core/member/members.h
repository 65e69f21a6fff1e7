/* SPDX-License-Identifier: BSD-2-Clause */
/* `struct member`, one for each store; the worth of its votes and its fence, and questions about all stores. */
#ifndef CORE_MEMBERS_H
#define CORE_MEMBERS_H

#include "daemon/core/event/core.h"
#include "daemon/core/event/event.h"
#include "daemon/core/member/admission.h"

struct members;
struct member;

/*
 * Votes. The vote until[i], on this daemon's CLOCK_BOOTTIME, is a lower bound of the moment until which node i keeps our value: the time just before the
 * command was sent + LEASE * (1 - rho) - delta. The lease holds at x if and only if at least Q votes are greater than x, so its deadline D is the Q-th
 * largest vote. Source: Antirez' Redlock with deadlines per node. See ALGORITHMS.md, Votes; Fencing tokens.
 */

#define DRIFT_PPM 10000 /* rho: bound of the relative rate error of two clocks, parts per million */
#define DRIFT_SLACK_US (3 * MSEC) /* delta: 2 ms, and the granularity of Redis, 1 ms */

/*
 * Fences and clocks. Tokens of a name grow because the fence of a store never falls, and any two quorums share a store. A store that forgot its fence gets a
 * new one at its join, which must not be smaller than the forgotten one. With S = SKEW_US, T = CLOCK_TOL and L = MAXLEASE + MAXDELAY:
 *
 *   used     a store is refused if its clock differs by more than T from the median of the others. So the clocks of two usable stores differ by at most 2 T
 *   limit    no script lets a fence run beyond the store's clock + S + 2 T, except for single tokens and the rules below
 *   join     a join comes after G > L since the loss, and lifts the fence to the store's clock + S
 *
 * The forgotten fence was at most (clock at the loss) + S + 2 T. At the join the clock shows at least (clock at the loss) + 0.99 L - 2 T, even if the store
 * was replaced by one whose clock is as far behind as tolerated. With T <= L / 5 that suffices: 0.99 L >= 4 T. A store that has just joined with a clock
 * that is ahead blocks nobody: its fence is at most (clock of another) + 2 T + S, which is within the limit of every other store.
 *
 * A clock may be set back by more than that. So a join also lifts the fence above the largest fence that this daemon saw at any store: while no more than
 * a minority forgets, the others show what was forgotten. They are asked after G. Before that, a vote of the store that forgot may still count
 * somewhere, and another token may be granted with it. The only store that knows the fence may be out of reach. So a join also lifts the fence to the limit
 * of the latest clock that this daemon saw at the joining store. Tokens may repeat after a loss in three cases only: too many stores forget; this daemon
 * was started after the clock was set back; trust_first_start, which states that nothing was lost.
 * A single store has no others to compare with: T = 0.
 *
 * If clocks were set back by more than 2 T, a fence may exceed the limit of its own store, and the fence of a store whose clock is ahead may exceed the
 * limit of others. If no proposal is within the limits then, bases differ, and a floor at the largest base would be refused until the clocks have caught
 * up. So there are two rules for the second round of an acquire whose largest base exceeds the limit of a store that granted:
 *
 *   least    the token is the Q-th smallest base, and only stores whose base is no larger are asked and counted
 *   beyond   if that base exceeds the limit of its own store as well, the others accept it beyond their limits
 *
 * And one rule for renewals and adoptions. Their floor is a token that a quorum granted. A store that granted on a smaller base, or was away then, would
 * refuse that floor until its clock has caught up. If another store failed meanwhile, the lease would be lost although a quorum is there.
 *
 *   kept     if a quorum of clocks is that far behind the token, a store accepts the floor beyond its limit
 *
 * Tokens still grow. Each store that counts need only satisfy this, whichever Q stores they are: its base is at most the token, and its fence is at least the
 * token while the key is ours. The limit keeps its purpose. A clock that is ahead spreads nothing, because its fence is within its own limit. A clock
 * that was ahead and is right again spreads nothing while Q others grant. And the floor is the fence of some store, so the largest of all fences, to which
 * a join lifts, does not grow.
 */
#define SKEW_US (60 * SEC)
#define CLOCK_TOL_MOST_US (5 * SEC)
/* The year 2112. No redlockd writes a larger fence, so a larger one is not passed on to other stores. */
#define FENCE_MOST INT64_C(4500000000000000)

struct votes {
	struct instant until[NODES_MAX]; /* INSTANT_PAST: no vote */
};

/* Q = floor(N/2) + 1 */
static inline unsigned quorum_of(unsigned nodes)
{
	return nodes / 2 + 1;
}

/* The Q-th largest of the values, one for each store: at Q stores the value is at least this. */
int64_t quorum_at_least(const int64_t *value, unsigned nodes);
/* The Q-th smallest: at Q stores the value is at most this. */
int64_t quorum_at_most(const int64_t *value, unsigned nodes);

/* rho of a duration: by how much another host's clock may differ over it. */
int64_t drift_us(int64_t us);
/* Clears the first `nodes` votes; the others are not used. */
static inline void votes_clear(struct instant until[], unsigned nodes)
{
	for (unsigned i = 0; i < nodes; i++)
		until[i] = INSTANT_PAST;
}

/* The vote of a command that was sent at `sent` and set a TTL for `lease_us`. */
struct instant vote_until(struct instant sent, int64_t lease_us);
/* D: the Q-th largest of the first `nodes` votes. */
struct instant votes_deadline(const struct instant until[], unsigned nodes);
/* T. Scripts let a fence run up to SKEW_US + 2 T beyond the store's clock. */
int64_t clock_tol_us(unsigned nodes, int64_t max_lease_us, int64_t max_delay_us);
/* G: how long a store that may have lost memory must not vote: (MAXLEASE + MAXDELAY) * (1 + 2 rho) + delta. */
int64_t quarantine_us(int64_t max_lease_us, int64_t max_delay_us);

/*
 * The fences that stores show, and how far a join must lift the fence of a store that forgot its own: see above. Other stores show what one store forgot, as
 * long as no more than a minority forgets. The last token that was granted with a vote of the forgetful store was granted before its quarantine ended. So the
 * others are asked only after that. A store that does not answer may be the only one that knows that token. So a join also counts what the forgetful store
 * itself may have issued before its clock was set back. See ALGORITHMS.md, Fencing tokens.
 */

/* Keeps the fence that m showed, if it is trusted and the largest. Called before that fence is forgotten, or passed to another store. */
void fences_note(struct members *ms, const struct member *m);
/* The largest of them. */
int64_t fences_most(struct members *ms);
/* The fence to which a join of m lifts, unless the clock of m gives a higher one. */
int64_t fences_floor(struct members *ms, const struct member *m);
/*
 * The nodes that have not reported their fence since the quarantine of m ended, and still may. m itself is one of them: its clock may have been set back
 * meanwhile.
 */
struct nodeset fences_unreported(const struct members *ms, const struct member *m);

/* What is known of each store, and questions about all of them. membership.h says how a store becomes a member. */

enum member_state {
	MEMBER_DOWN,        /* no connection */
	MEMBER_PROBING,     /* connected; its marker is not verified yet, or it is not known yet whose clock jumped */
	MEMBER_QUARANTINED, /* counting G */
	MEMBER_JOINED,      /* it gives votes */
	MEMBER_REFUSED,     /* must not be used; the reason says why and what to change. A quarantine that has begun goes on */
};

/* Bounds of (server clock - CLOCK_BOOTTIME) at a moment. */
struct clock_bounds {
	int64_t known;     /* 0: nothing. Not a bool, so that there is no padding: its bytes might look like a pointer (service_pack) */
	int64_t low, high; /* microseconds */
	struct instant at;
};

#define JUMP_SLACK_US (50 * MSEC) /* a smaller jump is ignored: it may be a pause of this process between two readings of a clock */

struct member_clock {
	bool known;
	int64_t low, high;
	struct instant at, sent;     /* the last answer: when it was read, and when it was asked for */
	struct instant sure;         /* when a jump of this clock or a stop of this host was last found: answers to earlier calls may be from before it */
	/* The bounds on which all looks agree, as long as they agree; each look adds to low and high what is too little to notice. */
	struct clock_bounds firm;
	bool again;                  /* it was looked at more than once */
};

/* Signs that a store lost memory. */
enum evidence {
	EVIDENCE_NONE,
	EVIDENCE_EVICTED,   /* it evicted keys */
	EVIDENCE_FENCE,     /* its fence fell back … */
	EVIDENCE_FLUSHED,   /* … and its marker is gone */
	EVIDENCE_SET_BACK,  /* its marker was set back */
	EVIDENCE_TOO_SOON,  /* it was joined anew without a quarantine */
	EVIDENCE_WAS_AHEAD, /* its clock was ahead when it was first seen */
	EVIDENCE_JUMPED,    /* its clock jumped ahead */
};

/* What a probe shows of it, apart from its membership. */
struct ill {
	enum defect defect; /* DEFECT_NONE: nothing */
	enum defect logged; /* the defect that was logged */
	char text[168];
};

#define SET_ID_MAX 16 /* "<nodes>.<8 hex>" */

#define BREAKS_MOST 3

struct member {
	enum member_state state;
	bool connected;
	bool stalled; /* a call is unanswered for longer than the timeout; ends with the next answer */
	struct instant up_since; /* connected since … */
	int64_t overtaken_us;    /* … and how long after that, at most, a command of an earlier connection may still set a key, after later commands */
	struct {
		int64_t us, before_us;            /* how uncertain the clock was, at worst, when calls that set keys were sent: lately, and before that */
		struct instant over, before_over; /* when none of these calls can set a key any more */
	} width;
	struct instant stalled_at;
	unsigned index;
	enum { ASKED_NOTHING, ASKED_PROBE, ASKED_MARK } asked;
	bool failed; /* its last probe was not carried out: only its timer asks again */
	struct instant asked_at;
	uint64_t asks; /* how many questions it was asked; a call has the number of the last one */
	/* joined: the marker that scripts compare; quarantined: the value that is being timed. Calls of this step may point to the other text */
	const char *marker;
	char marker_text[2][MARKER_MAX];
	uint64_t markers; /* how many it has had in this run */
	char offered[MARKER_MAX]; /* MARK in flight: the new value */
	char run_id[48], replid[48];
	enum defect defect; /* of the reason */
	char reason[160];
	char taken[SET_ID_MAX]; /* the set to which it belonged before ours; "" = none, or not known */
	bool ours;              /* its marker, when it was last seen, is of our configuration */
	bool was_ours;          /* … or once was */
	bool clock_is_off; /* its clock is too far from the others' … */
	struct instant clock_off_at; /* … when that was last seen */
	struct {
		bool done;         /* the comparison of its clock with the others is over; a step that may be hidden begins it anew: see clock.h */
		bool ahead;        /* not over, and the clock seemed too far ahead: the others are asked once more */
		bool set_back;     /* the clock was set back before the comparison was over: so it was ahead */
		struct instant at; /* ahead: since when; the others are to be asked after that */
		int64_t low, high; /* ahead: its clock then, as bounds of (server clock - CLOCK_BOOTTIME), microseconds */
		int64_t stop_us;   /* ahead: the least length of the stops of this host that were found since, though they may have been before */
	} met;
	/* From its last probe. The store is still asked about what is held, and does as much as it can. */
	struct ill refusal;  /* what locks need, and it has refused */
	struct ill lesser;   /* what locks can do without, and it refuses; it serves */
	struct ill misnamed; /* the other daemons have another name for it */
	/* No sentinel says whether it is still the master, or they disagree; or its name leads to several servers; or no new link is possible. */
	struct ill unwatched;
	struct ill apart; /* its clock is far off this host's */
	struct {
		enum defect defect;
		char text[4 * NAME_MAX_BYTES + 256]; /* with the longest name, quoted */
		struct instant at;
	} denial; /* the last refused call, if probes are not refused */
	struct instant suspect_at; /* when it was last probed because of a refused call */
	struct {
		struct instant at[BREAKS_MOST]; /* when its connection last broke, in order of time; INSTANT_PAST: never */
		char text[160];       /* about all three */
	} breaks;
	char far[96];  /* why its answers come too late, in words */
	bool far_logged; /* it was logged */
	unsigned late; /* how many answers in a row took longer than the timeout */
	/* Round trips longer than the timeout while most are not: in the present half minute, and in the one before. */
	struct {
		struct instant since; /* the first of them */
		uint64_t trips;       /* how many round trips had been timed before it */
		unsigned n;
		int64_t us;           /* the sum of their times */
	} lates[2];
	struct instant late_at; /* the time of the last one */
	char late_text[96];     /* how many there are, in words */
	bool unsaved;   /* its last probe: see struct probe */
	bool blank;     /* its last probe found no marker and no fault while trust was open */
	struct {
		enum evidence why;       /* of lost memory, if the marker does not show the loss */
		char marker[MARKER_MAX]; /* the marker in the same probe; "" = none, or the evidence does not come from a probe */
	} evidence;
	struct {
		/* The last value of kind 'j' that a quarantine has replaced: if the store shows it again, it was set back and lost memory. */
		char j[MARKER_MAX];
		char q[MARKER_MAX]; /* the last value of kind 'q' that a join has replaced: the same; also, a daemon that was cut off may have timed it */
	} replaced;
	struct {
		char marker[MARKER_MAX]; /* the last value of kind 'j' under which it was used … */
		struct instant at;       /* … when the probe or MARK that showed it was sent … */
		int64_t clock_us;        /* … and the earliest that the store's clock may have shown then */
	} vouched;
	struct {
		char marker[MARKER_MAX];  /* the value of kind 'q' that is being timed. A broken connection does not restart its time; a join does */
		struct instant since, end;
		struct instant ask_until; /* after the end, the others may report their fences until then; earlier than the end: they were not asked yet */
		char why[160];
		enum defect cause;        /* … if the cause is not a loss of memory */
		struct instant first;     /* when its memory was first lost … */
		unsigned losses;          /* … and how often in quick succession since then */
	} quarantine;
	char address[64]; /* its address, if the configuration does not give it; cut if longer */
	char silent[256]; /* why it publishes nothing for this daemon; "" = it does, or has not refused */
	enum defect silence; /* … as one word */
	bool silence_unlogged; /* the last change was not logged */
	char logged[160]; /* the reason that was last logged, and its state: so it is logged once and not each second */
	enum member_state logged_state;
	struct {
		struct instant full; /* when LINES_AT_ONCE lines may be logged at once again */
		unsigned left_out;
	} log_room; /* lines of the log about it */
	struct member_clock clock;
	struct clock_bounds beside[NODES_MAX]; /* what was known of all clocks at the last look at this one */
	struct {
		bool open;                  /* its clock jumped, or this host stood still: see clock.h */
		bool undone;                /* its clock was set back later: so that clock had jumped, and this host had not stood still */
		bool allowed;               /* a stop of this host was found later, and `before` allows for it */
		struct clock_bounds before; /* its clock before that … */
		struct clock_bounds beside[NODES_MAX]; /* … and what was known of all clocks then */
		struct instant first, seen; /* when it was seen first, and last */
		struct instant shown;       /* since when the store has shown all that is known of the jump, except what is too little to notice … */
		int64_t shown_low;          /* … and the least by which its clock was ahead then */
		bool denied;                /* another store that was asked after the jump was first seen does not show it */
		struct instant looked; /* when the first look was made, at least half a timeout after the jump was first seen; NEVER: not yet */
	} jump;
	struct flow flow;
	int64_t fence_seen, fence_when_asked, fence_probed; /* the largest; the largest at the time of the last probe; what the last probe showed */
	int64_t issued_us;    /* how far its fence may have come when it was last seen joined, less CLOCK_BOOTTIME then; 0: not known */
	int64_t fence_joined; /* its fence in the last probe of the joined store; 0 in quarantine */
	int64_t evicted;
	int64_t rtt_us; /* smoothed; 0 = not known. Longer than the timeout after several such answers in a row */
	struct instant timed_at; /* when rtt_us was last measured */
	struct histogram trips;  /* the calls that were timed: at most one per round trip */
	int64_t trips_us;        /* their sum */
	struct timer timer;
};

struct members {
	struct core *core;
	struct member node[NODES_MAX];
	char cfg[40], set_id[SET_ID_MAX];
	char elder[SET_ID_MAX]; /* the set of the generation before ours, if it was another; "" = not known */
	bool elder_is_over;     /* … and has had no quorum for long enough: enough of its stores are taken over, or a marker of kind 'j' names it */
	int64_t other_us;       /* the longest lease and delay of another configuration that may still be relied on; see members_bound_us */
	struct instant other_until;
	int64_t fence_most; /* the largest fence that any of our nodes showed before it joined anew */
	bool trusting;      /* trust_first_start is still open */
	struct instant trust_until; /* until when slower nodes may still be probed */
	bool host_apart;    /* this host's clock is far from that of most stores, which agree */
	bool gained;        /* a node became usable; cleared by the code that retries what waits for a quorum */
	/*
	 * How much sooner the votes of each node end, because its clock jumped, this host stood still, or its server moved. The engine lowers them and clears
	 * this.
	 */
	int64_t votes_fall_us[NODES_MAX];
	bool votes_fall;    /* some votes fall */
};

/* All votes of this node end this much sooner. */
static inline void members_shorten(struct members *ms, unsigned node, int64_t sooner_us)
{
	ms->votes_fall_us[node] += sooner_us;
	ms->votes_fall = true;
}

void members_init(struct members *ms, struct core *core);

/* The ids of calls of the membership differ from all others. */
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

static inline bool member_usable(const struct member *m)
{
	return m->state == MEMBER_JOINED && !m->stalled;
}

/* It may be asked for something new. A store that refuses what locks need might not be able to end it: it is asked only about what is held, see health.h. */
static inline bool member_may_grant(const struct member *m)
{
	return member_usable(m) && !m->refusal.defect;
}

const char *evidence_text(enum evidence why); /* for people; NULL for none */
enum defect evidence_defect(enum evidence why); /* DEFECT_NONE: its memory was lost */
/* Its round trips take longer than the timeout: its answers come too late to count. */
static inline bool member_is_far(const struct members *ms, const struct member *m)
{
	return m->rtt_us > ms->core->conf.timeout_us;
}

/* It refuses what locks need. That is not known of a store that is down or not judged yet. */
static inline bool member_refuses(const struct member *m)
{
	return (m->state == MEMBER_JOINED || m->state == MEMBER_QUARANTINED) && m->refusal.defect;
}

/* Its votes count: it is usable, refuses nothing that locks need, and answers in time. See health.h. */
static inline bool member_serves(const struct members *ms, const struct member *m)
{
	return member_may_grant(m) && !member_is_far(ms, m);
}

const char *member_state_word(enum member_state state);
unsigned members_usable(const struct members *ms);
/* Whether each store was examined once: joined, quarantined, refused or down. */
bool members_are_checked(const struct members *ms);
unsigned members_that_may_grant(const struct members *ms);
/* What a quorum has room for. Without a quorum there is nothing to wait for: a round may begin, and learns that at once. */
enum room members_room(const struct members *ms);
/* A quorum may grant, or will as soon as the probes under way are answered. Waiting a moment is better than a refusal that is wrong a moment later. */
bool members_promise_quorum(const struct members *ms);
/* Microseconds until enough quarantines end for a quorum; -1: a quorum may grant, or quarantines are not all that it lacks. */
int64_t members_pending_us(const struct members *ms);
/* The longest lease and lock-delay that any daemon may have promised. */
int64_t members_bound_us(const struct members *ms);
/* A marker names this bound: quarantines under way last for it, too. ours: the store was seen under our configuration, now and before. */
void members_note_bound(struct members *ms, int64_t bound_us, bool ours);
/* Whether the set of the generation before ours, if it was another, has had no quorum for long enough. Once true, it stays true. */
bool members_have_taken_over(struct members *ms);
/* The latest that the store's clock may show at `when`, in ms; 0: it is not known. */
int64_t member_server_ms(const struct member *m, struct instant when);
/* The earliest that it may show at `when`, which is not past: while the store's clock is before the result, this host's is before `when`. */
int64_t member_server_ms_least(const struct member *m, struct instant when);
/* The round trip of the slowest usable store; 0 = not known. */
int64_t members_rtt_us(const struct members *ms);
/* How long a free lock is reserved for the first waiter: it needs some round trips to be woken and to ask. */
int64_t members_reserve_us(const struct members *ms);
/* How long a round waits for the leading store before it asks the others as well: a store that does not hang has answered by then. */
int64_t members_answer_us(const struct members *ms);
/*
 * What the clock of the stores, the Q-th most advanced one, showed at `when`, in microseconds. All daemons look at the same clocks, so their own clocks do
 * not matter. As long as too few clocks are known, it is this host's own.
 */
int64_t members_clock_us(const struct members *ms, struct instant when);
int64_t members_clock_most_us(const struct members *ms, struct instant when); /* the upper bound of that */
/* The same by the clock of one store, which may be off by T: cheap, for display. */
int64_t members_one_clock_us(const struct members *ms, struct instant when);
/* It is usable, has room, and does not leave calls unanswered for longer than it usually takes. */
bool member_is_prompt(const struct members *ms, const struct member *m);
/*
 * Which of these to ask first for this name; -1 if none can be asked. The largest weight leads: all daemons agree, whatever the order in which they list the
 * stores.
 */
int members_leader(const struct members *ms, struct span name, struct nodeset among);
uint64_t member_weight(struct span name, struct span run_id);
/* How far ahead of its clock a store's scripts let a fence run. */
static inline int64_t members_ahead_us(const struct members *ms)
{
	return ms->core->conf.skew_us + 2 * ms->core->conf.clock_tol_us;
}
/* A quorum of clocks is so far behind this granted fence that they must have been set back since. */
bool members_were_set_back(const struct members *ms, int64_t fence);

#endif
