/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs of the memory store: daemon/redis/lua/jobs.lua in C, except that nobody is woken, because a memory store has one daemon. With a file they survive
 * the process: see job_keep.h. A change that cannot be written is refused.
 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"
#include "daemon/store/job_rows.h"

/* One operation; rest: its arguments. The caller has already set the time of the answer. Its text is written to `result`. */
void jobs_call(struct job_store *s, const struct call *c, struct span rest, struct buf *result, struct answer *a);

#endif
