/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pauses between attempts to connect again: they grow, and are drawn by chance, so that the clients of a daemon that was restarted do
 * not come all at once.
 */
#ifndef CLIENT_PAUSES_H
#define CLIENT_PAUSES_H

#include <stdint.h>

struct pauses {
	unsigned n; /* since an answer came */
	uint64_t chance;
};

/* From 10 ms, doubled each time, to 500 ms; half of it is drawn. */
int64_t pauses_next_us(struct pauses *p);

#endif
