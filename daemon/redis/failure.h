/* SPDX-License-Identifier: BSD-2-Clause */
/* What an error text of a Redis server proves about its command: it was not carried out, or the outcome is unknown. */
#ifndef REDIS_FAILURE_H
#define REDIS_FAILURE_H

#include "daemon/core/event/event.h"

#include <sys/socket.h>

/*
 * ANSWER_REFUSED for errors that are known to come before anything was done, even if raised inside a script and wrapped by the server. ANSWER_UNKNOWN for all
 * others.
 */
enum answer_class failure_class(struct span text);

/* Why the server refuses, by the code word and the fixed texts at the beginning of its error; DEFECT_OTHER for all others. */
enum defect failure_defect(struct span text);

/* An error that was raised inside a script, without the hash and the line that the server appends. */
struct span failure_text(struct span text);

/* Whether the text starts with this code word ("NOSCRIPT", "NOAUTH"). */
bool failure_is(struct span text, const char *code);

/* The bytes that came are no reply, or not the reply that was asked for. */
#define FAILURE_GARBAGE "what answers there is no Redis server, or no sound one"
#define FAILURE_SENTINEL "it is a sentinel, no server"
#define FAILURE_TLS_PORT "its port speaks TLS"
#define FAILURE_REPLICA "it is a replica: they are asked again"

/* Why the server could not be reached: the text of strerror, or what that means here, with the cause. */
const char *failure_errno(int error);
enum defect failure_errno_defect(int error);
enum defect failure_dial_defect(const struct sockaddr *to, int error); /* of connect(2); also detects a Unix socket without permission */

#endif
