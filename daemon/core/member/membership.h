/* SPDX-License-Identifier: BSD-2-Clause */
/* The membership of a store: its probe, what each answer shows of it, and what follows. */
#ifndef CORE_MEMBERSHIP_H
#define CORE_MEMBERSHIP_H

#include "daemon/core/event/journal.h"
#include "daemon/core/member/members.h"

/* Judges a node by the answer to a probe. It makes no calls. See ALGORITHMS.md, Restart guard. */

enum judgement_kind {
	JUDGED_JOINED,  /* case A below */
	JUDGED_QUARANTINED,  /* a quarantine under our configuration is under way */
	JUDGED_LOST,    /* case B: it may have lost memory */
	JUDGED_BLANK,   /* no marker, and trust_first_start is still open */
	JUDGED_REFUSED, /* must not be used */
};

struct judgement {
	enum judgement_kind kind;
	const char *reason; /* static, or in the memory of the effects */
	enum defect defect;   /* of a refusal */
};

/*
 * The median of clocks, as bounds of (clock - CLOCK_BOOTTIME). An even number has two medians: `low` belongs to the lower one, `upper_low` and `high` to the
 * upper one.
 */
struct middle {
	int64_t low, upper_low, high;
	unsigned others; /* how many other servers count */
};

/*
 * The median of the clocks of the other servers that were asked since then; if there are fewer than two, this host's clock counts as well. False: no other
 * server.
 */
bool judge_median(const struct members *ms, const struct member *m, struct instant since, struct middle *ret);
/* The judgement of the answer to a probe. Records identity and evictions in m. */
struct judgement judge_probe(struct members *ms, struct member *m, const struct answer *a);
/* A call found a smaller fence than one that was seen there before, or no marker at all. */
void judge_fence_fell(struct member *m);
/* Why the node's clock is too far off the others for it to be used; NULL if it is not. Text as in struct judgement. */
const char *judge_clock(struct members *ms, struct member *m);
/* Why a node that refused a probe or a join cannot be used until its administrator acts; NULL if the refusal may pass by itself. */
const char *judge_refusal(struct members *ms, const struct answer *a);

/* The two calls of the membership to a store, PROBE and MARK, and the only code that writes a store's state. Decides nothing. */

/*
 * The only writer of a store's state. Logs a change, unless the same state and reason were logged last, or the log has no room (member_may_log); always logs
 * PROBING. defect: of a reason other than its memory.
 */
void member_become(struct members *ms, struct member *m, enum member_state state, enum defect defect, const char *reason);
/* Logs what the log had no room for. False: there is still none. */
bool member_log_rest(struct members *ms, struct member *m);
/* Asks the store for its identity and its marker. */
void member_probe(struct members *ms, struct member *m);
/* Compare-and-set of the store's marker: from `from` to a fresh one of the kind 'q' or 'j'. */
void member_mark(struct members *ms, struct member *m, struct span from, char kind);

/*
 * What every answer shows about its store: that it is alive, how long a round trip takes, what time it is there and how exactly that is known, and that its
 * marker changed.
 */

/* The answer to any call that was sent at `sent`. Asks stores again where it raises a question. */
void member_observe(struct members *ms, const struct answer *a, struct instant sent);
/* The same, but jumps of clocks are left to members_judge_jumps. */
void member_take_answer(struct members *ms, const struct answer *a, struct instant sent);
/* Judges the clock jumps that are open. Probes the stores that must show more, and those whose jump is decided: they are used again, or quarantined. */
void members_judge_jumps(struct members *ms);
/* A call that sets a key is about to be sent there. us: the uncertainty of the clock, which bounds how late that may happen. */
void member_note_width(const struct members *ms, struct member *m, int64_t us);
/* The connection of m broke: its commands may still set keys for a while. */
void member_note_overtaken(const struct members *ms, struct member *m);

/* trust_first_start: stores without a marker are joined at once, as long as this daemon has never joined a store and has found no marker anywhere. */

/* A probe found no marker. Joins the blank stores once all are probed, or a quorum is blank and the slower ones have had their time. */
void trust_blank(struct members *ms);
/* A marker was found: this is not the first start. Stores that waited for trust are quarantined. */
void trust_withdraw(struct members *ms);

/*
 * Membership of the stores: a node gives votes only while it is joined, that is, while its marker is the one that this daemon verified on this connection.
 * A vote that it gave before counts until its moment, whatever the node has lost since: quarantine lasts longer than any vote. A node that may have lost
 * memory (restarted, flushed, replaced, evicting, its clock jumped) is in quarantine until every lease that anybody may still rely on has ended:
 *
 *   A  marker "j|cfg|run_id|replid|nonce|…" with our configuration and its present identity: joined
 *   B  anything else: compare-and-set to "q|cfg|run_id|replid|fresh nonce|…", wait G from then on
 *   C  after G, compare-and-set from exactly that value to "j|…|fresh nonce|…", which also lifts its fence above every token issued: by its clock,
 *      and above what this daemon has seen of it and of the others, where clocks were set back
 *
 * A second loss meanwhile changes the marker, so the compare-and-set of C fails: no ABA. Nor does a node carry it out after the timeout: by then a snapshot
 * may have restored that very value, or a flush the blank node that trust_first_start saw. cfg is "<generation>.<hash>": a higher generation takes
 * over by B, another hash at the same generation is refused. trust_first_start: while this daemon has never joined a store and no probe shows a
 * marker, a quorum of blank nodes is joined at once.
 *
 * What follows the nonce is for the generations to come: "bound|set|taken". A marker of an earlier version ends with the nonce.
 *   bound  the longest lease and lock-delay, ms, that may have been promised on a vote of this node when the marker was set. A new generation with a
 *          smaller max_lease waits for the old bound. So does a node that lost its marker, if the markers of other nodes name a larger bound: until
 *          every node was seen under our configuration, and that bound has passed since another was last seen.
 *   set    how many nodes the set has, and a hash of its name
 *   taken the set of the generation from which this node was taken over; '' if there was none. Another set may have nodes that we do not know. That set has no
 *   quorum any more once half of its nodes, rounded up, are taken over. No daemon that knows of it joins a node before that was so for
 *          G, and then names it in each marker. A node that was joined when no daemon knew of it does not name it.
 *
 * A value of kind 'j' that takes the place of another sooner than a quarantine takes is evidence of lost memory: a node that was set back may show a 'q'
 * that some daemon has timed before, and a node that was flushed may look new to a daemon that has just been started.
 *
 * A clock that seems to jump is evidence of lost memory only once it is known that it was not this host that stood still: see clock.h.
 * See ALGORITHMS.md, Restart guard.
 */

void member_up(struct members *ms, unsigned node, struct span address); /* address: see EVENT_NODE_UP */
void member_down(struct members *ms, unsigned node, enum defect defect, struct span reason);
/*
 * Another server has taken its place, where perhaps another daemon is timing the quarantine: the votes of this store are void.
 * See ALGORITHMS.md, Restart guard.
 */
void member_replaced(struct members *ms, unsigned node);
/* TIMER_MEMBER. */
void member_fired(struct members *ms, struct member *m);
/* The answer to a call of the membership: see member_owns_call(). False: no such call was made. */
bool member_answered(struct members *ms, const struct answer *a);
/* A call to the store has timed out: it counts as silent until its next answer. */
void member_stall(struct members *ms, unsigned node);

/*
 * What a daemon has seen of its stores, for the next process in a restart: the signs by which it finds that a store lost memory, and how long each
 * quarantine has lasted. See STORES to QUARANTINE in journal.h. After a crash a daemon begins without them.
 *
 * The next process verifies each marker itself, so the state of a store is not passed on. Nor is what answers soon show again: round trips, troubles, the
 * windows of calls, and the earlier set of a store.
 */

#define MEMBER_RECORDS_MOST 6

/* What is about all stores. The texts are valid while nothing changes here. */
struct journal_record members_record(struct members *ms);
/* About one store: fills the array, and returns the number of records. */
unsigned member_records(const struct members *ms, unsigned node, struct journal_record ret_record[MEMBER_RECORDS_MOST]);

/* Restores this, before any store is connected. True: the configuration is the same, so the records of each store count. */
bool members_restore(struct members *ms, const struct journal_record *r);
/* False: the record makes no sense. A record of a store that is not ours is ignored. */
bool member_restore(struct members *ms, const struct journal_record *r);

#endif
