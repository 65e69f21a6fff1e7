/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who goes when all together have too much: of the peer that has most in sum, the one that has most. So no peer, however many connections it has, makes those
 * of another go that has less.
 */
#ifndef BASE_GREATEST_H
#define BASE_GREATEST_H

#include <stddef.h>

struct greatest { /* zero-filled: none was seen */
	void *one; /* NULL: none has anything */
	size_t own, of_peer;
};

/* own: what this one has; of_peer: what its peer has in sum. */
static inline void greatest_see(struct greatest *g, void *one, size_t own, size_t of_peer)
{
	if (own == 0 || of_peer < g->of_peer || (of_peer == g->of_peer && own <= g->own))
		return;
	*g = (struct greatest){.one = one, .own = own, .of_peer = of_peer};
}

#endif
