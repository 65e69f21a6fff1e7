/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges a node by the answer to a probe. It makes no calls. See ALGORITHMS.md, Restart guard. */
#ifndef CORE_JUDGE_H
#define CORE_JUDGE_H

#include "daemon/core/members.h"

enum judgement_kind {
	JUDGED_JOINED,  /* case A of member.h */
	JUDGED_TIMING,  /* a quarantine under our configuration is under way */
	JUDGED_LOST,    /* case B: it may have lost memory */
	JUDGED_BLANK,   /* no marker, and trust_first_start is still open */
	JUDGED_REFUSED, /* must not be used */
};

struct judgement {
	enum judgement_kind kind;
	const char *reason; /* static, or in the memory of the effects */
};

#define JUMP_SLACK_US (50 * MSEC) /* a smaller jump is ignored: it may be a pause of this process between two readings of a clock */

/* The judgement of the answer to a probe. Records identity and evictions in m. */
struct judgement member_judge(struct members *ms, struct member *m, const struct answer *a);

/*
 * One reply bounds (server clock - CLOCK_BOOTTIME) by [server - received, server - sent]. Returns by how much at most the server's clock
 * has jumped ahead; 0 if it may not have jumped. Drift within rho, 50 ms, and the time that a reply lay unread are no jump.
 */
int64_t member_clock_jump(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received);

/* Why the node's clock is too far off the others to be used; NULL if it is not. Text as in struct judgement. */
const char *judge_clock(struct members *ms, struct member *m);
/* Whether a call was refused because the node cannot save, and so refuses writes. Before Redis 7 the place in the script precedes the code word. */
bool judge_is_misconf(const struct answer *a);
/* Why a node that refused a probe or a join cannot be used until its administrator acts; NULL if the refusal may pass by itself. */
const char *judge_refusal(struct members *ms, const struct answer *a);

#endif
