/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembers the last answer to PROBE. Its script reads INFO, the marker, the fence and what the store is called: while none of them changes the answer is the
 * same, except for the clock. A third of all scripts are probes, and few of them find anything new.
 */
#ifndef SIM_PROBE_MEMO_H
#define SIM_PROBE_MEMO_H

#include "daemon/base/arena.h"
#include "daemon/core/event/event.h"
#include "tests/sim/redis/model.h"

#define MEMO_TRUST 16 /* every so many probes one is run and compared with the memo */

struct memo {
	bool known;
	unsigned asked;
	/* what the script read */
	char run_id[RUN_ID_LENGTH + 1], replid[RUN_ID_LENGTH + 1], role[16];
	int64_t evicted;
	bool fed;
	struct span marker, fence, called;
	struct answer answer;
	struct arena arena; /* the memory that the spans point to */
};

void memo_init(struct memo *m);
void memo_release(struct memo *m);
void memo_forget(struct memo *m); /* the server was restarted, and knows no script */

/* What a probe would read now; INFO comes from the model. */
struct memo_read {
	const struct model *model;
	struct span marker, fence, called;
};

/* Answers a probe. False: the probe must be run, because something has changed or to verify the memo. */
bool memo_answer(struct memo *m, const struct memo_read *r, const struct call *call, int64_t wall_us, struct answer *ret_answer);
/* A probe was run. False: its answer differs from the previous one, although it read the same. */
bool memo_keep(struct memo *m, const struct memo_read *r, const struct answer *answer) __attribute__((warn_unused_result));

/* A copy whose spans are in the arena as well. */
const struct probe *probe_copy(struct arena *a, const struct probe *from);
void span_keep(struct arena *a, struct span *text);

#endif
