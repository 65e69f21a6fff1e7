/* SPDX-License-Identifier: BSD-2-Clause */
/* What an error text of a Redis server proves about the command that it answers: it was not carried out, or nobody knows. */
#ifndef REDIS_VERDICT_H
#define REDIS_VERDICT_H

#include "daemon/core/event.h"

/*
 * ANSWER_REFUSED for the errors that are known to come before anything was done, however the
 * server wraps them when they were raised inside a script; ANSWER_UNKNOWN for everything else.
 */
enum answer_class verdict_of(struct span text);

/* The text starts with this code word ("NOSCRIPT", "NOAUTH"). */
bool verdict_is(struct span text, const char *code);

#endif
