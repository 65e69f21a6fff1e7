/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_calls.h. */
#include "client/lib/tls_calls.h"

static const struct tls_calls *current;

const struct tls_calls *secure(void)
{
	return current;
}

void redlock_set_secure(const struct tls_calls *functions)
{
	current = functions;
}
