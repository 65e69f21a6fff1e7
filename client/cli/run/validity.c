/* SPDX-License-Identifier: BSD-2-Clause */
/* See validity.h. */
#include "client/cli/run/validity.h"
#include "client/lib/display.h"

#include <stdio.h>
#include <sys/param.h>

#define TERM_SHARE 5  /* of the validity is left when the command is stopped */
#define KILL_SHARE 10 /* … and when it is killed */
#define STILL_LEAST_US 100000 /* a process that is late by less was only waiting for a processor */
#define ANSWER_LEAST_US 200000 /* for the answer that tells whether the lock is still held */
#define ASK_SHARE  20 /* of the validity is given to an answer, and to a daemon that could not tell */

/*
 * CHECK is asked every third of the ttl, which also notices a daemon that is stopped, not gone. The best moment is shortly after
 * the daemon renews, which it does when two thirds of the ttl are left.
 */
static int64_t check_after(int64_t ttl_us, int64_t valid_us)
{
	int64_t renewal = valid_us - 2 * ttl_us / 3;

	return MIN(ttl_us / 3, (renewal > 0 ? renewal : 0) + ttl_us / 20);
}

void validity_set(struct validity *b, const struct redlock_grant *grant)
{
	int64_t valid_us = grant->valid_ms * 1000, ttl_us = (grant->ttl_ms ? grant->ttl_ms : b->grant.ttl_ms) * 1000;

	if (ttl_us <= 0)
		ttl_us = valid_us;
	b->longest_us = MAX(b->longest_us, MIN(ttl_us, valid_us));
	b->grant = *grant;
	b->grant.ttl_ms = ttl_us / 1000;
	if (!b->awake_us)
		b->awake_us = grant->until_us - valid_us; /* a process can be stopped before it looks at the clock */
	b->check_at = grant->until_us - valid_us + check_after(ttl_us, valid_us);
	b->term_at = grant->until_us - b->longest_us / TERM_SHARE;
	if (b->term_at > b->late_until) {
		b->stood_us = b->late_until = 0;
		return;
	}
	b->term_at = b->late_until; /* it is the answer to a CHECK of before */
}

int64_t validity_kill_at(const struct validity *b)
{
	return b->grant.until_us - b->longest_us / KILL_SHARE;
}

void validity_asked(struct validity *b, int64_t now)
{
	b->term_at = MAX(b->term_at, MIN(now + b->longest_us / ASK_SHARE, validity_kill_at(b)));
}

void validity_awake(struct validity *b, int64_t now)
{
	int64_t late = now - b->awake_us, wait = MAX(b->longest_us / ASK_SHARE, ANSWER_LEAST_US), kill_at = validity_kill_at(b);

	b->awake_us = now;
	if (late < STILL_LEAST_US || late < b->longest_us / ASK_SHARE)
		return;
	b->stood_us += late;
	b->late_until = now < kill_at ? MIN(now + wait, kill_at) : now + wait; /* nobody else has the lock before its validity is over */
	b->term_at = MAX(b->term_at, b->late_until);
}

void validity_sleeps(struct validity *b, int64_t due)
{
	b->awake_us = MAX(b->awake_us, due);
}

const char *validity_still(const struct validity *b, char out[STILL_BYTES])
{
	char age[AGE_BYTES];

	out[0] = '\0';
	if (b->stood_us)
		snprintf(out, STILL_BYTES, "; this process was paused for %s", age_text(b->stood_us / 1000, age));
	return out;
}

bool validity_may_ask(const struct validity *b, int64_t now)
{
	return now < MAX(validity_kill_at(b), b->late_until);
}

void validity_untold(struct validity *b, int64_t now)
{
	b->check_at = now + b->longest_us / ASK_SHARE;
}
