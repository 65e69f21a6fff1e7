/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the membership share (member.c, members.c, observe.c); nobody else includes it. */
#ifndef CORE_MEMBER_PART_H
#define CORE_MEMBER_PART_H

#include "daemon/core/member.h"

/* The only writer of a state. */
void member_become(struct members *ms, struct member *m, enum member_state state, const char *reason);
void member_probe(struct members *ms, struct member *m);
/* Compare-and-set: from what stands there to a fresh marker of the kind 'q' or 'j'. */
void member_offer(struct members *ms, struct member *m, struct span from, char kind);

/* trust_first_start: once all nodes are probed, or the slow ones had their time, and a quorum carries no marker. */
void members_trust(struct members *ms);
/* A marker was found: this is no first start. Nodes that waited for trust go the long way. */
void members_distrust(struct members *ms);
/* Its connection broke: what went over it and sets a key is under way for a while yet. */
void member_goes_astray(const struct members *ms, struct member *m);
/* What any answer tells, but for whose clock jumped. */
void member_hear(struct members *ms, const struct answer *a, struct instant sent);
/* What is known by now of clocks that jumped; asks for what is missing. */
void members_settle_jumps(struct members *ms);

#endif
