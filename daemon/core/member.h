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

#include "daemon/core/members.h"

void member_up(struct members *ms, unsigned node);
void member_down(struct members *ms, unsigned node, struct span reason);
/* TIMER_MEMBER. */
void member_fired(struct members *ms, struct member *m);
/* The answer to a call that member_owns_call. False: nothing was asked. */
bool member_answered(struct members *ms, const struct answer *a);
/* A call to it has had its time: it counts as silent until its next answer. */
void member_stall(struct members *ms, unsigned node);

#endif
