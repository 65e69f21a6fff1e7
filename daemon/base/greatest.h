/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selects what must end when all together have too much: the largest one of the peer with the largest sum. So a peer with many connections cannot end those of
 * a peer that has less.
 */
#ifndef BASE_GREATEST_H
#define BASE_GREATEST_H

#include <stddef.h>

struct greatest { /* zero-filled: nothing was seen yet */
	void *one; /* NULL: nobody has anything */
	size_t own, of_peer;
};

/* own: the size of this one; of_peer: the sum of its peer. */
static inline void greatest_see(struct greatest *g, void *one, size_t own, size_t of_peer)
{
	if (own == 0 || of_peer < g->of_peer || (of_peer == g->of_peer && own <= g->own))
		return;
	*g = (struct greatest){.one = one, .own = own, .of_peer = of_peer};
}

#endif
