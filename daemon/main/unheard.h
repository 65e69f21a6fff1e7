/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of Redis servers for which a loop pass had no time: the service gets them in the next passes, in the order in which they came. */
#ifndef MAIN_UNHEARD_H
#define MAIN_UNHEARD_H

#include "daemon/core/event/event.h"

/* Copies, with all their texts. A zero-filled one is empty. */
struct unheard {
	struct answer *answer; /* answer[first … end) */
	size_t first, end, cap;
};

void unheard_release(struct unheard *u);
void unheard_add(struct unheard *u, const struct answer *a);
void unheard_drop_first(struct unheard *u);

static inline bool unheard_is_empty(const struct unheard *u)
{
	return u->first == u->end;
}

static inline const struct answer *unheard_first(const struct unheard *u)
{
	return &u->answer[u->first];
}

#endif
