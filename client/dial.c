/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "client/dial.h"
#include "client/address.h"
#include "client/complaint.h"

#include <errno.h>
#include <string.h>

static const char *connect_hint(int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return "; is it running?";
	case EHOSTUNREACH:
		return "; does the name resolve?";
	default:
		return "";
	}
}

struct redlock *dial(const char *given)
{
	struct redlock *c;
	char standard[512] = "";
	const char *addr = given ? given : standard;
	int r = given ? 0 : redlock_address(standard, sizeof(standard));

	if (!r)
		r = redlock_open(addr, ANSWER_TIMEOUT_MS, &c);
	if (!r)
		return c;
	if (r == -EINVAL && address_flaw(addr))
		complain("cannot reach redlockd at %s: %s", *addr ? addr : "''", address_flaw(addr));
	else
		complain("cannot reach redlockd at %s: %s%s", addr, strerror(-r), connect_hint(-r));
	return NULL;
}
