/* SPDX-License-Identifier: BSD-2-Clause */
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
 * A second loss meanwhile changes the marker, so the compare-and-set of C fails: no ABA. Nor does a node carry it out after the timeout: a snapshot may
 * bring that very value back, and a flush the blank node that trust_first_start saw. cfg is "<generation>.<hash>": a higher generation takes
 * over by B, another hash at the same generation is refused. trust_first_start: while this daemon has never joined a store and no probe shows a
 * marker, a quorum of blank nodes is joined at once.
 *
 * What follows the nonce is for the generations to come: "bound|set|taken". A marker of an earlier version ends with the nonce.
 *   bound  the longest lease and lock-delay, ms, that may have been promised on a vote of this node when the marker was set. A new generation with a
 *          smaller max_lease waits for the old bound. So does a node that lost its marker, if the markers of other nodes name a larger bound: until
 *          every node was seen under our configuration, and that bound has passed since another was last seen.
 *   set    how many nodes the set has, and a hash of its name
 *   taken  the set of the generation from which this node was taken over; '' if there was none. Another set may have nodes that we do not know. It
 *          has no quorum any more once half of its nodes are taken over, rounded up. No daemon that knows of it joins a node before that was so for
 *          G, and then names it in each marker. A node that was joined when no daemon knew of it does not name it.
 *
 * A value of kind 'j' that takes the place of another sooner than a quarantine takes is evidence of lost memory: a node that was set back may show a 'q'
 * that some daemon has timed before, and a node that was flushed may look new to a daemon that has just been started.
 *
 * A clock that seems to jump is evidence of lost memory only once it is known that it was not this host that stood still: see clock_jump.h.
 * See ALGORITHMS.md, Restart guard.
 */
#ifndef CORE_MEMBER_H
#define CORE_MEMBER_H

#include "daemon/core/member/members.h"

void member_up(struct members *ms, unsigned node, struct span address); /* address: see EVENT_NODE_UP */
void member_down(struct members *ms, unsigned node, enum defect defect, struct span reason);
/* Another server has taken its place, and quarantine is being timed there, perhaps by another daemon: its votes are void. See ALGORITHMS.md, Restart guard. */
void member_replaced(struct members *ms, unsigned node);
/* TIMER_MEMBER. */
void member_fired(struct members *ms, struct member *m);
/* The answer to a call of the membership: see member_owns_call(). False: no such call was made. */
bool member_answered(struct members *ms, const struct answer *a);
/* A call to the store has timed out: it counts as silent until its next answer. */
void member_stall(struct members *ms, unsigned node);

#endif
