/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the adapter share: clients, what they hold, and the calls. */
#ifndef CLIENTS_ADAPTER_H
#define CLIENTS_ADAPTER_H

#include "client/lib/redlock.h"
#include "tests/clients/adapter_c/json.h"

#include <sys/queue.h>

#define ANSWER_MS 5000

struct client {
	char handle[16], address[256], label[64];
	int64_t grace_ms, heartbeat_ms;
	struct redlock *c; /* NULL: closed, or it has ended and the next call opens another */
	bool used;
	TAILQ_HEAD(, call) calls; /* the first has a request in flight, or is to begin */
};

struct part { /* a name of a hold */
	char name[REDLOCK_NAME_BYTES];
	int64_t fence, until_us;
};

struct hold {
	LIST_ENTRY(hold) next;
	char handle[64], owner[32], permit[24], reason[64];
	struct client *client;
	struct part part[JSON_MOST];
	size_t n;
	bool takes, lost;          /* takes: a job, of the queue part[0].name */
	struct redlock_job job;
};

enum stage { QUEUED, ASKED, CHECKED, EXTENDED, GIVEN_BACK };

struct call {
	TAILQ_ENTRY(call) next;
	char *line; /* that of row */
	struct json row;
	const char *what;
	struct client *client;
	struct hold *hold;
	enum stage stage;
	size_t at; /* the part that is asked about */
	int64_t asked_us, until_us;
	bool left; /* the caller has gone */
	struct redlock_rate rate;
	char job[REDLOCK_JOB_BYTES]; /* of defer */
	struct redlock_run run; /* of once and status */
	char error[32], text[400], name[REDLOCK_NAME_BYTES];
};

/* --- hold.c --- */

LIST_HEAD(holds, hold);
extern struct holds holds;

void say_field(const char *key, const char *text);
void say_bytes(const char *key, struct redlock_bytes text); /* null without bytes */
void say_end(const char *end);
void say_state(const struct hold *h);
void say_granted(const struct hold *h);
/* Seconds. */
double left(const struct hold *h);
struct hold *hold_find(const char *handle);
void hold_free(struct hold *h);
void hold_drop(struct hold *h);
void lose_all(const struct client *cl, const char *reason);
void lose_expired(void);
void hear_push(const struct client *cl, const struct redlock_line *push);

/* --- call.c --- */

bool asks(const struct call *k, const char *what);
const char *text(const struct call *k, const char *key);
int64_t wait_ms(const struct call *k);
/* Whether it is for a hold of its own. */
bool takes(const struct call *k);
/* What the connection goes on after; others have ended it. */
bool goes_on(int r);
/* The beginning of a call, or what follows an answer. Returns what has ended the connection, or 0. */
int call_go(struct call *k);

/* --- said.c --- */

/* r: the outcome, of which the library tells more unless the call has noted it. */
void say_failed(const struct call *k, int r);
/* The caller is told at once; what was asked goes on. */
void call_leave(struct call *k);
void call_end(struct call *k, int r);

#endif
