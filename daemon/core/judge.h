/* SPDX-License-Identifier: BSD-2-Clause */
/* What a probe says about a node: pure judgement, no calls. See ALGORITHMS.md, Restart guard. */
#ifndef CORE_JUDGE_H
#define CORE_JUDGE_H

#include "daemon/core/member.h"

enum verdict_kind {
	VERDICT_JOINED,  /* case A of member.h */
	VERDICT_TIMING,  /* a quarantine under our configuration is under way */
	VERDICT_LOST,    /* case B: it may have lost memory */
	VERDICT_BLANK,   /* no marker, and trust_first_start is still open */
	VERDICT_REFUSED, /* must not be used */
};

struct verdict {
	enum verdict_kind kind;
	const char *reason; /* static, or in the memory of the effects */
};

#define JUMP_SLACK_US (50 * MSEC) /* what goes ahead by less is not noticed: a pause of ours between two looks at a clock */

/* Of the answer to a probe. Takes note of identity and evictions in m. */
struct verdict member_judge(struct members *ms, struct member *m, const struct answer *a);

/*
 * One reply bounds (server clock - CLOCK_BOOTTIME) by [server - received, server - sent]. Returns by how much at most the server's clock
 * has jumped ahead, 0 if it need not have: drift within rho and 50 ms are no jump, nor is a reply that sat in a socket.
 */
int64_t member_clock_jump(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received);

/* Why its clock is too far from the other servers' to be used; NULL if it is not. Text as in struct verdict. */
const char *judge_clock(struct members *ms, struct member *m);
/* Of a call that was refused: the node cannot save, and so it refuses writes. Before Redis 7 the place in the script stands before the word. */
bool judge_is_misconf(const struct answer *a);
/* Why a node that refused a probe or a join must not be used until somebody mends it; NULL if that may pass by itself. */
const char *judge_refusal(struct members *ms, const struct answer *a);

#endif
