/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations that only show what the queues have. See jobs.h. */
#ifndef STORE_JOB_SHOW_H
#define STORE_JOB_SHOW_H

#include "daemon/store/job_op.h"

char job_show_list(struct job_op *o);
char job_show_queues(struct job_op *o);

#endif
