/* SPDX-License-Identifier: BSD-2-Clause */
/* One operation on the jobs of a memory store, while it runs. */
#ifndef STORE_JOB_OP_H
#define STORE_JOB_OP_H

#include "daemon/base/netstring.h"
#include "daemon/store/job_rows.h"

#define JOB_SWEEP 32 /* leases that are over, or jobs that end, in one call */

struct job_op {
	struct job_store *store;
	struct span name;        /* of the queue */
	struct job_queue *queue; /* NULL: it has no jobs */
	struct buf *result;
	int64_t now_ms;
	struct span rest; /* words that are not read yet */
	struct span ended[JOB_SWEEP]; /* owned; ids of the jobs that have failed for good with it */
	unsigned ended_n;
	bool refused;     /* there is no room for what it would change, or the file has jobs that the store has not */
};

static inline struct span next_word(struct job_op *o)
{
	struct span word;

	return netstring_next(&o->rest, &word) ? word : SPAN("");
}

static inline int64_t next_number(struct job_op *o)
{
	int64_t n;

	return netstring_next_int(&o->rest, &n) ? n : 0;
}

static inline void job_op_put(struct job_op *o, struct span word)
{
	netstring_put(o->result, word);
}

static inline void job_op_put_number(struct job_op *o, int64_t n)
{
	netstring_put_int(o->result, n);
}

/* Jobs end that failed for good so long ago: some of the queue that has the oldest. */
void job_op_sweep_dead(struct job_op *o, int64_t keep_ms);
/* In how many ms something may be due; -1: never, as it is. */
int64_t job_op_next_ms(const struct job_op *o, const struct job_queue *q);

#endif
