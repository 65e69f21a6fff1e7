/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of moves. */
#include "daemon/core/lock/state.h"

const struct state_row contender_table[CONTENDER_N] = {
#define CONTENDER_STATE(id, word, what) [CONTENDER_##id] = {word, what},
#include "daemon/core/lock/move.def"
};

const struct state_row lease_table[LEASE_N] = {
#define LEASE_STATE(id, word, what) [LEASE_##id] = {word, what},
#include "daemon/core/lock/move.def"
};

const struct state_row cause_table[CAUSE_N] = {
#define CAUSE(id, word, what) [CAUSE_##id] = {word, what},
#include "daemon/core/lock/move.def"
};

const bool contender_moves[CONTENDER_N][CONTENDER_N][CAUSES_MAX] = {
#define CONTENDER_MOVE(from, to, why) [CONTENDER_##from][CONTENDER_##to][CAUSE_##why] = true,
#include "daemon/core/lock/move.def"
};

const bool lease_moves[LEASE_N][LEASE_N][CAUSES_MAX] = {
#define LEASE_MOVE(from, to, why) [LEASE_##from][LEASE_##to][CAUSE_##why] = true,
#include "daemon/core/lock/move.def"
};
