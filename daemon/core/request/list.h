/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST, and how LISTs that take more than one step take turns. */
#ifndef CORE_LIST_H
#define CORE_LIST_H

#include "daemon/core/session/request_context.h"

void serve_LIST(struct request_context *x, struct session *s);

void lists_init(struct request_context *x);
/* TIMER_LISTS: the next slice. */
void lists_go_on(struct request_context *x);
/* The daemon stops: refuses all LISTs under way. True: there were some. */
bool lists_stop(struct request_context *x);

#endif
