/* SPDX-License-Identifier: BSD-2-Clause */
/* See loss.h. */
#include "client/cli/run/loss.h"

#include <string.h>

static bool bytes_are(struct redlock_bytes bytes, const char *text)
{
	return bytes.n == strlen(text) && !memcmp(bytes.p, text, bytes.n);
}

static bool fence_is_of(int64_t fence, const struct redlock_grant *grants, unsigned n)
{
	unsigned i = 0;

	while (i < n && grants[i].fence != fence)
		i++;
	return i < n;
}

const struct redlock_line *loss_push(struct redlock *c, const struct redlock_grant *grants, unsigned n)
{
	const struct redlock_line *push;

	while ((push = redlock_next_push(c)))
		if (bytes_are(redlock_line_code(push), "LOST") && fence_is_of(redlock_line_number(push, "fence", 0), grants, n))
			return push;
	return NULL;
}

bool loss_is_final(const struct redlock_line *push)
{
	struct redlock_bytes reason = redlock_line_find(push, "reason");

	return bytes_are(reason, "evicted") || bytes_are(reason, "broken");
}

bool loss_refused(const struct redlock *c)
{
	return !strcmp(redlock_code(c), "LOST") || !strcmp(redlock_code(c), "NOTHELD");
}
