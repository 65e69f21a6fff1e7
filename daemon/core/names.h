/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests COMPLETE, RECENT and FORGET. What this daemon knows is merged with what each store that can be used answers in time; an answer that no store
 * has a part in says so. Work and memory of one request are bounded by its limit.
 */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

#include "daemon/core/noted.h"

void serve_COMPLETE(struct commander *x, struct session *s);
void serve_RECENT(struct commander *x, struct session *s);
void serve_FORGET(struct commander *x, struct session *s);

/* Looks whether this is the answer to a question of ours, or to notes. The engine has tracked it already. */
void names_answered(struct commander *x, const struct answer *a);
void names_fired(struct commander *x, struct timer *t);
void names_free(struct commander *x);

#endif
