/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a session is opened and resumed: what HELLO asked for, and the id and secret by which RESUME names the session.
 */
#ifndef CLIENT_GREETING_H
#define CLIENT_GREETING_H

#include "client/lib/redlock.h"
#include "proto/proto.h"
#include <sys/types.h>

#define HELLO_BYTES  1200
#define RESUME_BYTES 256

struct greeting {
	bool resumes; /* the daemon gives grace: the session outlives its connection */
	pid_t owner;  /* the process that said HELLO: its redlock_close says QUIT */
	char session[64], secret[128];
	char hello[HELLO_BYTES]; /* said again when the session is gone */
	size_t bare_n;           /* of hello, without its grace */
	bool graceless;          /* the session was opened again, without grace: the daemon gives less now */
	bool grace;              /* the HELLO in flight asks for it */
};

/* Writes the line into out, NUL-terminated. -EMSGSIZE: the label is too long. */
int greeting_hello(struct greeting *g, const struct redlock_session *session, char out[HELLO_BYTES]) REDLOCK_MUST;
/* The daemon said OK to that line. */
void greeting_agreed(struct greeting *g, struct span hello, const struct reply_line *answer);
/* Takes id and secret from an OK to HELLO. */
void greeting_named(struct greeting *g, const struct reply_line *answer);
/* Writes the line into out, and returns its length; 0: there is no session to resume. */
size_t greeting_resume(const struct greeting *g, char out[RESUME_BYTES]);
/* Whether an ERR to RESUME says that the session is gone. A daemon that does not know RESUME has no session of ours either. */
bool greeting_is_gone(const struct reply_line *refusal);
/*
 * The session is gone. Returns the reason of the losses: with grace a lock ends with its lease ("expired"), without grace it is
 * free since the connection broke ("evicted").
 */
const char *greeting_lose(struct greeting *g);
/* HELLO was refused. True: the daemon gives less grace now, or knows none; say hello without its grace. Not true twice in a row. */
bool greeting_waives(struct greeting *g, const struct reply_line *refusal);

#endif
