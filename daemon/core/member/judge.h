/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges a node by the answer to a probe. It makes no calls. See ALGORITHMS.md, Restart guard. */
#ifndef CORE_JUDGE_H
#define CORE_JUDGE_H

#include "daemon/core/member/members.h"

enum judgement_kind {
	JUDGED_JOINED,  /* case A of member.h */
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

/* The median of clocks, as bounds of (clock - CLOCK_BOOTTIME). An even number has two: `low` is of the lower one, `upper_low` and `high` of the upper one. */
struct middle {
	int64_t low, upper_low, high;
	unsigned others; /* how many other servers are counted */
};

/*
 * The median of the clocks of the other servers that were asked since then; if these are fewer than two, with this host's. False: no other server.
 */
bool judge_median(const struct members *ms, const struct member *m, struct instant since, struct middle *ret);
/* The judgement of the answer to a probe. Records identity and evictions in m. */
struct judgement judge_probe(struct members *ms, struct member *m, const struct answer *a);
/* A call found that the store's fence is smaller than one that was seen there, or no marker at all. */
void judge_fence_fell(struct member *m);
/* Why the node's clock is too far off the others to be used; NULL if it is not. Text as in struct judgement. */
const char *judge_clock(struct members *ms, struct member *m);
/* Why a node that refused a probe or a join cannot be used until its administrator acts; NULL if the refusal may pass by itself. */
const char *judge_refusal(struct members *ms, const struct answer *a);

#endif
