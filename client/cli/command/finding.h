/* SPDX-License-Identifier: BSD-2-Clause */
/* What doctor has found, one line for each check: for a person, or as a JSON object. */
#ifndef CLIENT_FINDING_H
#define CLIENT_FINDING_H

#include <stdbool.h>

enum finding_status {
	FINDING_OK,
	FINDING_WARN, /* works, but something is worse than it could be */
	FINDING_FAIL, /* locks are refused, or less safe than they should be */
};

struct findings {
	bool json;
	unsigned fails;
};

/* check: a word that programs know. fix: what to do; "" for FINDING_OK. */
void finding_tell(struct findings *f, const char *check, enum finding_status status, const char *fix, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
