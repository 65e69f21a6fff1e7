/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whose clock jumped. If a store's clock seems to jump ahead, either that clock was set forward, or this host stood still: a stopped virtual
 * machine does not count the time. In the first case all daemons quarantine the store, since keys of others ended early there. In the second case the
 * votes of all stores are lowered by the jump, and no store is marked. Answers come one after the other, so the first jump does not show which case it is.
 * Until that is known the votes of the store do not count, and the other stores are asked for their clocks:
 *
 *   ours    a majority of all stores shows a jump of that size between the same two moments
 *   theirs  so many others answered later without the jump, or did not answer within the timeout of a command, that there is no such majority; or the
 *           store's clock was set back meanwhile
 *
 * A host that stood still often resumes in fits and starts, and after a stop of this process alone the answers of the others lie unread. So the others
 * count as silent only at a second look, after the timeout and half a timeout after the first look.
 *
 * What the others show counts from the last look at the store before it jumped: what they showed before is of earlier stops, which may have been too short
 * to be noticed. An answer that came so late that it fits both cases decides nothing: that store is asked again. A late answer does not make less certain
 * what is known either: all answers that agree are true of one clock.
 *
 * A store denies a jump if it was asked after the jump was seen, answers soon, and shows less than half of it. A denied jump is compared with later jumps of
 * others only after a new look at its store: a stop of that length may come before the jump is judged, and the others may show it before this store does.
 *
 * A store that executed, during the stop, a call sent before it shows only a part of the stop; one whose clock had jumped by itself shows more. Once the
 * others show the whole stop, such a store is judged again: what is left is a jump of its own, or none.
 *
 * A single store has no others to agree with: theirs. CLOCK_REALTIME of this host is no evidence: it is often set when a stopped machine resumes.
 * See ALGORITHMS.md, Jumping clocks.
 */
#ifndef CORE_CLOCK_JUMP_H
#define CORE_CLOCK_JUMP_H

#include "daemon/core/member/members.h"

enum jump_whose { JUMP_OPEN, JUMP_OURS, JUMP_THEIRS, JUMP_NONE /* no jump is left */ };

/* Notes the clock of a store from the answer to a call sent at `sent`. True: that clock has certainly jumped: see clock_measure. */
bool jump_note(struct members *ms, struct member *m, int64_t server_us, struct instant sent);
/* When an open jump must be looked at if no answer comes before. */
struct instant jump_look_at(const struct members *ms, const struct member *m);
/* Notes the first look, which stores have told their time since the jump, and whether one denies it. Each answer leads to a look. */
void jump_look(const struct members *ms, struct member *m);
/* This process was stopped since the first looks: the others' answers lie unread. Each first look that was noted counts as made now. */
void jumps_look_anew(struct members *ms);
/*
 * Which open jump of these stores is judged next; NULL: none is open. A jump that is ours comes first, because it explains jumps of other stores; of several
 * the shortest, because what a longer one has beyond it is judged by itself.
 */
struct member *jump_next(struct members *ms, struct nodeset among);
/* Judges an open jump. */
enum jump_whose jump_judge(const struct members *ms, const struct member *m);
/* The stores that must be asked for their time to judge it. */
struct nodeset jump_asks(const struct members *ms, const struct member *m);
/* The jump is ours: closes it and those that show no more, lowers the votes of all nodes, and corrects what is known of their clocks. */
void jump_is_ours(struct members *ms, struct member *m);
void jump_is_theirs(struct members *ms, struct member *m);
void jump_is_none(struct members *ms, struct member *m);

#endif
