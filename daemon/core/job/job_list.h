/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST jobs: what the home of the queue has, asked piece by piece. */
#ifndef CORE_JOB_LIST_H
#define CORE_JOB_LIST_H

#include "daemon/core/session/jobs.h"

/* Of the LIST that is being served. most: rows. */
void job_list_jobs(struct request_context *x, struct session *s, size_t most);
void job_list_told(struct request_context *x, struct home_question *q);
void surveys_free_all(struct request_context *x);

#endif
