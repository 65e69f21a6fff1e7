/* SPDX-License-Identifier: BSD-2-Clause */
/* See secure.h. */
#include "client/lib/secure.h"

static const struct secure *current;

const struct secure *secure(void)
{
	return current;
}

void redlock_set_secure(const struct secure *functions)
{
	current = functions;
}
