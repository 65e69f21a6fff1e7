/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a server's last PROBE said. Its script reads INFO, the marker and the fence: while none of them changes it says the same again, but for the clock. A third of
 * all scripts are probes, and of these few find anything new.
 */
#ifndef SIM_PROBE_MEMO_H
#define SIM_PROBE_MEMO_H

#include "daemon/base/arena.h"
#include "daemon/core/event.h"
#include "tests/sim/redis/model.h"

#define MEMO_TRUST 16 /* one of so many is run all the same, and compared */

struct memo {
	bool known;
	unsigned asked;
	/* What the script read. */
	char run_id[RUN_ID_LENGTH + 1], replid[RUN_ID_LENGTH + 1], role[16];
	int64_t evicted;
	bool fed;
	struct span marker, fence;
	struct answer answer;
	struct arena arena; /* what the spans point to */
};

void memo_init(struct memo *m);
void memo_release(struct memo *m);
void memo_forget(struct memo *m); /* the server is another one, and knows no script */

/* What a probe reads now; what it reads of INFO is the model's. */
struct memo_read {
	const struct model *model;
	struct span marker, fence;
};

/* The answer to a probe. False: it must be run, for something has changed, or to see whether the memo is right. */
bool memo_tell(struct memo *m, const struct memo_read *r, const struct call *call, int64_t wall_us, struct answer *ret_answer);
/* One was run. False: it says otherwise than the one before, which read the same. */
bool memo_keep(struct memo *m, const struct memo_read *r, const struct answer *answer) __attribute__((warn_unused_result));

/* What a probe points to goes to the arena as well. */
const struct probe *probe_copy(struct arena *a, const struct probe *from);
void span_keep(struct arena *a, struct span *text);

#endif
