/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose clock jumped? A store's clock that seems to jump ahead was set forward, or stood right while ours stood still: a virtual machine that is
 * stopped does not count the time. The first is the store's affair, and it is quarantined for all daemons, since keys of others ended early there. The
 * second is ours: the votes of all stores are lowered by it, and no store is marked. Answers come one after the other, so the first jump does not tell
 * which it is. Until it is known the store's votes do not count, and the other stores are asked what time it is there:
 *
 *   ours    a majority of all stores shows a jump of that size between the same two moments
 *   theirs  so many others answered later without it, or did not answer within the timeout of a command, that there is no such majority; or the
 *           store's clock was set back meanwhile
 *
 * A host that has stood still often goes on by fits and starts. Just after a stop of this process alone what the others have said lies unread, so their time is
 * over when it is looked at twice, half of it apart.
 *
 * A store that carried out what we had asked before while we stood still shows a part of the stop. Once that is known from the others it is looked at anew:
 * what is left then is its own jump, or none.
 *
 * A store that is alone has nobody to agree with: theirs. CLOCK_REALTIME of this host does not tell: whoever sets a stopped machine going again often
 * sets that clock right at the same moment.
 * See ALGORITHMS.md, Jumping clocks.
 */
#ifndef CORE_JUMP_H
#define CORE_JUMP_H

#include "daemon/core/member.h"

enum jump_whose { JUMP_OPEN, JUMP_OURS, JUMP_THEIRS, JUMP_NONE /* is left */ };

/* An answer that was asked for at `sent` tells what time it is at that store. True: its clock has jumped for certain, see judge.h. */
bool jump_note(struct members *ms, struct member *m, int64_t server_us, struct instant sent);
/* When a jump that is open is to be looked at, if nobody says a word. */
struct instant jump_look_at(const struct members *ms, const struct member *m);
void jump_look(const struct members *ms, struct member *m); /* it is being looked at */
/* Of a jump that is open. */
enum jump_whose jump_judge(const struct members *ms, const struct member *m);
/* Bits: the nodes whose clocks must be looked at for that. */
struct nodeset jump_asks(const struct members *ms, const struct member *m);
/* It was ours: closes this jump and those like it, lowers the votes of all nodes, and allows for it in what is known of their clocks. */
void jump_is_ours(struct members *ms, struct member *m);
void jump_is_theirs(struct member *m);

#endif
