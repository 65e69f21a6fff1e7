/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A market: sellers list items, buyers buy them, and neither money nor goods may come or go. One run in one way, on a Redis that is empty and is left to
 * the caller; market.py runs all of them. It is an example of libredlock, too: guard.c has all that concerns locks.
 *
 *   build/market redis=PATH way=watch|redlockd|direct|none [redlockd=PATH] [lock=market|item] [sellers=1] [buyers=1] [ms=1000]
 *
 * Prints a line of figures. Status 1: something does not add up, or could not be done.
 */
#include "tests/bench/market/sums.h"

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define ACTORS_MAX 1000

static const char *value_of(const char *word, const char *key)
{
	size_t n = strlen(key);

	return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static void set_option(struct market *m, int64_t *ms, const char *word)
{
	const char *value;

	if ((value = value_of(word, "redis")))
		m->redis = value;
	else if ((value = value_of(word, "redlockd")))
		m->redlockd = value;
	else if ((value = value_of(word, "way")))
		m->way = value;
	else if ((value = value_of(word, "sellers")))
		m->sellers = (unsigned)atoi(value);
	else if ((value = value_of(word, "buyers")))
		m->buyers = (unsigned)atoi(value);
	else if ((value = value_of(word, "ms")))
		*ms = atoll(value);
	else if (strcmp(word, "lock=market") == 0 || strcmp(word, "lock=item") == 0)
		m->item_locks = strcmp(word, "lock=item") == 0;
	else
		errx(2, "unknown option: %s", word);
}

static void print_figures(const struct actor *actors, unsigned count, int64_t us)
{
	struct actor all = {0};

	for (unsigned i = 0; i < count; i++) {
		all.listed += actors[i].listed;
		all.bought += actors[i].bought;
		all.retries += actors[i].retries;
		all.wait_us += actors[i].wait_us;
	}
	printf("figures us=%lld listed=%llu bought=%llu retries=%llu wait_us=%lld\n", (long long)us, (unsigned long long)all.listed,
	       (unsigned long long)all.bought, (unsigned long long)all.retries, (long long)(all.bought ? all.wait_us / (int64_t)all.bought : 0));
}

/* Returns whether the market adds up afterwards. */
static bool market_runs(const struct market *m, int64_t ms)
{
	static struct actor actors[ACTORS_MAX];
	unsigned count = m->sellers + m->buyers;
	int64_t begun_us;
	bool hold;

	for (unsigned i = 0; i < count; i++)
		actor_open(&actors[i], m, i < m->sellers, i < m->sellers ? i : i - m->sellers);
	begun_us = redlock_now_us();
	actors_start(actors, count);
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	actors_stop(actors, count);
	print_figures(actors, count, redlock_now_us() - begun_us);
	hold = sums_hold(actors, count);
	for (unsigned i = 0; i < count; i++)
		actor_close(&actors[i]);
	return hold;
}

int main(int argc, char **argv)
{
	struct market m = {.way = "", .sellers = 1, .buyers = 1};
	int64_t ms = 1000;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++)
		set_option(&m, &ms, argv[i]);
	if (!m.redis || !m.sellers || !m.buyers || m.sellers > ACTORS_MAX / 2 || m.buyers > ACTORS_MAX / 2 || ms <= 0)
		errx(2, "usage: market redis=PATH way=watch|redlockd|direct|none [redlockd=PATH] [lock=market|item] [sellers=1] [buyers=1] [ms=1000]");
	return market_runs(&m, ms) ? 0 : 1;
}
