/* SPDX-License-Identifier: BSD-2-Clause */
/* How a group is answered: what it has becomes its client's, or it is refused. The group is gone afterwards. */
#ifndef CORE_GROUP_ANSWER_H
#define CORE_GROUP_ANSWER_H

#include "daemon/core/session/group.h"

/* It has all names: a row for each, and OK. */
void group_win_all(struct request_context *x, struct group *g);
/* It has this one, which is all that it wants. */
void group_win_one(struct request_context *x, struct group *g, struct part *p);
/* p: the name that the answer is about. */
void group_refuse(struct request_context *x, struct group *g, const struct part *p, enum refusal why);
/* It has no client that could be told. */
void group_answered(struct request_context *x, struct group *g);

#endif
