/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pauses between attempts to connect again. They grow and are random, so that the clients of a daemon that restarted do not come
 * all at once.
 */
#ifndef CLIENT_BACKOFF_H
#define CLIENT_BACKOFF_H

#include <stdint.h>

struct backoff {
	unsigned n; /* pauses since the last answer */
	uint64_t chance;
};

/* The next pause: its upper bound doubles from 10 ms to 500 ms, and half of it is random. */
int64_t backoff_next_us(struct backoff *p);

#endif
