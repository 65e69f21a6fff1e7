/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a connection: bytes to lines, one request in flight, pushes kept in their order.
 */
#ifndef CLIENT_CONN_H
#define CLIENT_CONN_H

#include "client/redlock.h"
#include "proto/proto.h"
#include <sys/queue.h>

#define PUSHES_MAX 4096 /* a daemon that sends more between two looks at them is not believed any further */
#define US_PER_MS  1000

struct redlock_line {
	struct reply_line parsed; /* its spans point into scratch */
	size_t n;
	char *text;    /* as it came */
	char *scratch; /* unquoted in place */
};

struct push {
	STAILQ_ENTRY(push) next;
	struct redlock_line line;
	char bytes[]; /* text, then scratch */
};

struct redlock {
	int fd;
	int broken; /* 0, or the negative errno that ended it */
	int64_t timeout_ms;

	char in[2 * REPLY_MAX];
	size_t in_at, in_n; /* in[in_at .. in_n) was read and not yet taken */
	char out[LINE_MAX_DEFAULT];
	size_t out_at, out_n;

	bool in_flight;
	int64_t sent_us; /* read before the request in flight, or last answered, was sent */
	void (*row)(void *arg, const struct redlock_line *line);
	void *row_arg;

	bool answered; /* answer is set */
	struct redlock_line answer, passing;
	char answer_text[REPLY_MAX], answer_scratch[REPLY_MAX];
	char passing_text[REPLY_MAX], passing_scratch[REPLY_MAX];

	STAILQ_HEAD(, push) pushes; /* arrived, not yet asked for */
	size_t pushes_n;
	struct push *shown; /* what redlock_next_push returned last */

	char code[32];
	char message[1024];
};

/* A connected, non-blocking, close-on-exec descriptor, or a negative errno. */
int address_connect(const char *addr, int64_t timeout_ms) REDLOCK_MUST;

/* Writes the message and returns err. */
int conn_says(struct redlock *c, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The outcome of the answer, told in the message. */
int conn_outcome(struct redlock *c);
/* Waits for the answer, wait_ms longer than the timeout; an answer that is not there by then breaks the connection. */
int conn_await(struct redlock *c, int64_t wait_ms) REDLOCK_MUST;
/* Puts text, escaped for a person, into out and returns out; cut where it is long. */
#define SHOWN_BYTES 200
const char *conn_shown(struct span text, char out[SHOWN_BYTES]);

#endif
