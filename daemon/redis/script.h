/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scripts, and the meaning of their replies. Pure. A reply is accepted as a whole or not at all: if one row cannot come from
 * the script, no answer is passed on.
 */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

#include "daemon/redis/batch.h"
#include "daemon/redis/resp.h"

/* The text of each script, embedded by the build: gen/scripts.c. */
extern const struct span script_text[SCRIPT_N];

struct script_sink {
	void *context;
	void (*answer)(void *context, const struct answer *answer); /* borrowed during the call */
};

/* Makes one answer per entry, in order. 0; -EPROTO: the reply does not fit this script, and no answer was made. */
int script_answer(const struct batch *b, const struct resp *r, unsigned node, const struct script_sink *sink)
	__attribute__((warn_unused_result));

/* Gives all entries the same answer: the connection broke, or the whole call was refused. */
void script_fail(const struct batch *b, unsigned node, enum answer_class class, enum defect defect, struct span text, const struct script_sink *sink);

/* The same for calls that were not sent at all. */
void script_unsent(const struct batch *b, unsigned node, struct span text, const struct script_sink *sink);

/* Whether the server does not know the script (NOSCRIPT), so nothing was carried out. */
bool script_is_missing(const struct resp *r);

#endif
