/* SPDX-License-Identifier: BSD-2-Clause */
/* By when a daemon of lives_test.c must answer a request, and hang up on a client that has half-closed. */
#include "tests/unit/lives.h"

#include <check.h>
#include <stdio.h>

#define DUES     1024
#define BUSY_US  (20 * SEC) /* stores with a small window: an EXTEND may wait for as long as its lease lasts */
#define CLOSE_US (12 * SEC)

static struct due {
	unsigned k;
	struct instant at;
	char request[100];
} due[DUES];
static unsigned dues;

void dues_open(void)
{
	dues = 0;
}

static int64_t lock_bound_us(const char *line, int64_t timeout_us)
{
	if (strstr(line, " wait=forever"))
		return INT64_MAX;
	return strstr(line, " wait=2s") ? 3 * SEC + 4 * timeout_us : SEC + 3 * timeout_us + 50 * MSEC;
}

/* The tag begins with the verb. */
static int64_t bound_us(const struct client *c, const char *line)
{
	int64_t timeout_us = stage.daemon[c->daemon].conf.timeout_us;

	switch (line[1]) {
	case 'L':
		return lock_bound_us(line, timeout_us);
	case 'E':
		return lives.windowed ? BUSY_US : 3 * timeout_us;
	case 'U':
	case 'F':
	case 'S':
		return lives.windowed ? BUSY_US : timeout_us + MSEC;
	default: /* answered from memory */
		return 0;
	}
}

void due_begins(const struct client *c, const char *line)
{
	struct due *d = &due[dues++];
	int64_t us;

	ck_assert_uint_lt(dues, DUES);
	us = bound_us(c, line);
	*d = (struct due){.k = c->k, .at = us == INT64_MAX ? INSTANT_NEVER : instant_add(stage.now, us)};
	snprintf(d->request, sizeof(d->request), "%.*s", (int)sizeof(d->request) - 1, line);
}

void due_ends(unsigned k, const char *reply)
{
	size_t tag = strcspn(reply, " ") + 1;
	unsigned i = 0;

	if (reply[tag] == '*')
		return;
	while (i < dues && (due[i].k != k || strncmp(due[i].request, reply, tag) != 0))
		i++;
	ck_assert_msg(i < dues, "session %u has an answer that it has not asked for: %s", k, reply);
	due[i] = due[--dues];
}

void dues_leave(unsigned k)
{
	for (unsigned i = dues; i-- > 0;)
		if (due[i].k == k)
			due[i] = due[--dues];
}

void dues_move(int64_t us)
{
	for (unsigned i = 0; i < dues; i++)
		due[i].at = instant_add(due[i].at, us);
	for (unsigned i = 0; i < CLIENTS; i++)
		lives.client[i].half_at = instant_add(lives.client[i].half_at, us);
}

void dues_look(void)
{
	for (unsigned i = 0; i < dues; i++)
		ck_assert_msg(!instant_before(due[i].at, stage.now), "session %u is not answered at %lld ms: %s", due[i].k,
			      (long long)(stage.now.us / MSEC), due[i].request);
	for (unsigned i = 0; i < CLIENTS; i++) {
		const struct client *c = &lives.client[i];

		ck_assert_msg(!c->k || !c->half || instant_diff(stage.now, c->half_at) <= CLOSE_US,
			      "client %u has half-closed session %u, which does not end", i, c->k);
	}
}
