/* SPDX-License-Identifier: BSD-2-Clause */
/* A redis-server of a test's own, in a folder of its own, on a Unix socket, with a clock that the test sets: what a real Redis says. */
#ifndef UNIT_ORACLE_H
#define UNIT_ORACLE_H

#include "proto/span.h"
#include <hiredis/hiredis.h>
#include <stdint.h>
#include <sys/types.h>

struct oracle {
	char dir[32];
	pid_t pid;
	int log; /* its standard output, open as long as it runs */
	redisContext *redis;
	volatile int64_t *frozen_us; /* its clock: it stands there until this is changed */
};

void oracle_start(struct oracle *o, int64_t clock_us); /* returns when it answers; dies if it cannot */
void oracle_stop(struct oracle *o);

/* Synchronous; the caller frees the reply. Dies when the server is gone. */
redisReply *oracle_say(struct oracle *o, const struct span *word, size_t n);
redisReply *oracle_tell(struct oracle *o, const char *format, ...); /* as redisCommand: %b takes bytes and their number */

#endif
