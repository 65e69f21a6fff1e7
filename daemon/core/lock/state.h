/* SPDX-License-Identifier: BSD-2-Clause */
/* What a name asks for, what it has, and why it moved: the words of move.def. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include <stdbool.h>

enum contender_state {
#define CONTENDER_STATE(id, word, what) CONTENDER_##id,
#include "daemon/core/lock/move.def"
	CONTENDER_N
};

enum lease_state {
#define LEASE_STATE(id, word, what) LEASE_##id,
#include "daemon/core/lock/move.def"
	LEASE_N
};

enum cause {
#define CAUSE(id, word, what) CAUSE_##id,
#include "daemon/core/lock/move.def"
	CAUSE_N
};

struct state_row {
	const char *word, *what;
};
extern const struct state_row contender_table[CONTENDER_N], lease_table[LEASE_N], cause_table[CAUSE_N];

#define CAUSES_MAX 32

/* From, to, why: whether move.def has such a row. */
extern const bool contender_moves[CONTENDER_N][CONTENDER_N][CAUSES_MAX];
extern const bool lease_moves[LEASE_N][LEASE_N][CAUSES_MAX];

#endif
