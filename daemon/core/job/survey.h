/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST jobs and LIST queues: what the homes of queues have, asked piece by piece. */
#ifndef CORE_SURVEY_H
#define CORE_SURVEY_H

#include "daemon/core/session/jobs.h"

/* Of the LIST that is being served. most: rows. */
void survey_jobs(struct commander *x, struct session *s, size_t most);
void survey_queues(struct commander *x, struct session *s, size_t most);
void survey_told(struct commander *x, struct home_question *q);
void surveys_free_all(struct commander *x);

#endif
