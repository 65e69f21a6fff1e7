/* SPDX-License-Identifier: BSD-2-Clause */
/* Split votes: which rounds ask one store first, which store that is, and the pause after a round that nobody won. */
#ifndef CORE_SPLIT_VOTE_H
#define CORE_SPLIT_VOTE_H

#include "daemon/core/round/engine_data.h"

#define SPLIT_TRIES 3 /* a request that does not wait is told BUSY after so many rounds that were split or found a holder */
#define RACE_MOST 16 /* a value that splits so many rounds in a row is no rival's, but a dead daemon's: it ends by its TTL */
/* A round begins: which store it asks first, -1: all at once. Uses up one of the rounds that ask one store first. */
int split_take_leader(const struct engine *e, struct contender *k);
/* This store, which the round asked first, has refused: which one it asks next, likewise alone; -1: none, the leading store is a rival's. */
int split_next_leader(const struct engine *e, const struct round *r, unsigned node);
/* The round is over: notes what was in the way at which store. */
void split_remember(const struct engine *e, struct contender *k, const struct round *r);
/* For how long, at least, one and the same value has been in the way at a quorum; -1: no such value was seen. It stops at some weeks. */
int64_t split_seen_ms(const struct engine *e, const struct contender *k);
/* A quorum has answered, and the votes are split: whether by rivals, one of whom may win. False: by the key of a dead daemon. */
bool split_has_rivals(const struct engine *e, const struct round *r);
int64_t split_lasting_us(const struct engine *e); /* how long a round waits for a slow store that can help against such a key */
/* The votes were split: the name asks its leading store first for a while, unless that store was taken. Returns the pause before the next round, us. */
int64_t split_note(struct engine *e, struct contender *k, const struct round *r, bool leader_taken);
/* For a request that does not wait: shortens the pause after a round that decided nothing to about a round trip. */
void split_hurry(struct engine *e, struct contender *k);

#endif
