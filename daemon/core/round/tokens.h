/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fencing tokens, as a round asks for them: the first that it proposes, how many it reserves, and what its grants allow a second round to lift the fence to.
 * Asks nobody. See quorum.h, and ALGORITHMS.md, Fencing tokens.
 */
#ifndef CORE_TOKENS_H
#define CORE_TOKENS_H

#include "daemon/core/round/round.h"

#define TOKENS_RANGE_MOST 1024
#define TOKENS_AHEAD 64 /* for waiters to come */
#define TOKENS_NAMES 512 /* places for the names that were contended last: a power of two */

struct tokens {
	int64_t seen;         /* the largest token in any reply that may be believed */
	int64_t proposed;     /* the last token of what was proposed last */
	struct instant modest_until; /* no proposals before this moment: one was within the limit of one store and beyond that of another */
	struct instant narrow_until; /* single tokens only before this moment: a store's fence is as far ahead of its clock as it may be */
	struct {
		uint64_t hash;
		struct instant until;
	} contended[TOKENS_NAMES];   /* by the hash of the name; another name may take the place */
};

/* Somebody waits for this name while it is held here: others are expected to do so in the next seconds. */
void tokens_expect(struct tokens *t, const struct core *core, const struct name *name);

static inline void tokens_saw(struct tokens *t, int64_t token)
{
	if (token > t->seen)
		t->seen = token;
}

/*
 * What a round proposes that reserves a range, by a hybrid logical clock: above every token that was seen anywhere, and above what other rounds proposed, whose
 * answers may be under way. 0: nothing, each store takes its own next token.
 */
static inline int64_t tokens_propose(struct tokens *t, const struct core *core, int64_t range)
{
	int64_t proposal = core->wall_us;

	if (instant_before(core->now, t->modest_until))
		return 0;
	if (t->seen >= proposal)
		proposal = t->seen + 1;
	if (t->proposed >= proposal && t->proposed < core->wall_us + SEC) /* else our clock has been set back: no store would follow */
		proposal = t->proposed + 1;
	t->proposed = proposal + range;
	return proposal;
}

/*
 * How many tokens a round reserves beyond the first, so that the lock can be handed on without a round: one for each other local waiter, and TOKENS_AHEAD at
 * least if the name was contended of late.
 */
int64_t tokens_range(const struct tokens *t, const struct core *core, const struct name *name, unsigned waiting);

/* A floor was refused: no proposals for a while. Within that time the limit of the store that refused passes the base; a proposal would lift the base, too. */
void tokens_be_modest(struct tokens *t, const struct core *core);
/* A range was refused. A single token is never refused for the clock. */
void tokens_be_narrow(struct tokens *t, struct instant now);

/* This base is beyond the limit of a store that granted it: the clock of that store was set back. See quorum.h. */
bool tokens_base_is_beyond(const struct members *ms, const struct round *r, int64_t base);
/* A store that granted may refuse this base as a floor: its clock is behind, or was set back, or is hardly known. */
bool tokens_base_is_far(const struct members *ms, const struct round *r, int64_t base);

#endif
