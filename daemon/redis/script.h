/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scripts, and what their replies mean. Pure. A reply is believed as a whole or not at all: when one row is not what the
 * script can have said, nothing of it is handed on.
 */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

#include "daemon/redis/batch.h"
#include "daemon/redis/resp.h"

/* The text of each script, embedded by the build: gen/scripts.c. */
extern const struct span script_text[SCRIPT_N];

struct script_sink {
	void *context;
	void (*answer)(void *context, const struct answer *answer); /* borrowed for the length of the call */
};

/* One answer per entry, in their order. -EPROTO: the reply has not the shape of this script, and nothing was answered. */
int script_answer(const struct batch *b, const struct resp *r, unsigned node, const struct script_sink *sink)
	__attribute__((warn_unused_result));

/* Every entry gets this answer: the connection is gone, or the whole call was refused. */
void script_fail(const struct batch *b, unsigned node, enum answer_class class, struct span text, const struct script_sink *sink);

/* The server does not know the script, so nothing was carried out. */
bool script_is_missing(const struct resp *r);

#endif
