/* SPDX-License-Identifier: BSD-2-Clause */
/* See backoff.h. */
#include "client/lib/backoff.h"

#include <sys/param.h>

#define PAUSE_FIRST_US 10000
#define PAUSE_LAST_US  500000
#define DOUBLED_MOST   10

int64_t backoff_next_us(struct backoff *p)
{
	int64_t longest = MIN((int64_t)PAUSE_FIRST_US << MIN(p->n, DOUBLED_MOST), PAUSE_LAST_US);

	p->n++;
	p->chance = p->chance * 6364136223846793005u + 1442695040888963407u;
	return longest / 2 + (int64_t)(p->chance >> 33) % (longest / 2);
}
