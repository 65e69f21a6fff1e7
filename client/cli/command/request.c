/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that send one request and print its outcome: break, kill and drain, for administrators; rate, defer, retry and drop; ping. */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the exit code of that outcome. On success prints the answer, as JSON or by the function print. */
static int answer_print(struct redlock *c, const struct invocation *in, int outcome,
			void (*print)(const struct redlock_line *answer, const struct invocation *in))
{
	int r = exit_of(c, outcome);

	if (!r && in->json)
		json_print_line(redlock_answer(c), false);
	else if (!r && print)
		print(redlock_answer(c), in);
	return r;
}

/* --- break, kill --- */

static void broken_print(const struct redlock_line *answer, const struct invocation *in)
{
	int64_t ms = redlock_line_number(answer, "free_in_ms", 0);
	char name[SHOWN_BYTES], age[AGE_BYTES];

	printf("%s is broken", shown(in->operand, name));
	if (ms > 0)
		printf("; it is free in %s, or when its holder has acknowledged the loss\n", age_text(ms, age));
	else if (ms < 0)
		printf("; it is free when its holder has acknowledged the loss: its key never expires\n");
	else
		printf(", and free\n");
}

int break_ask(struct redlock *c, const struct invocation *in)
{
	return answer_print(c, in, redlock_break(c, in->operand, NULL), broken_print);
}

static void killed_print(const struct redlock_line *answer, const struct invocation *in)
{
	printf("session %s is ended; it held %" PRId64 "\n", in->operand, redlock_line_number(answer, "n", 0));
}

int kill_ask(struct redlock *c, const struct invocation *in)
{
	return answer_print(c, in, redlock_kill(c, strtoll(in->operand, NULL, 10), NULL), killed_print);
}

/* --- drain: the daemon grants nothing new, and stops when nobody holds anything --- */

#define NO_END (-1) /* in_ms: no limit */

static void drain_print(const struct redlock_line *answer, const struct invocation *in)
{
	int64_t locks = redlock_line_number(answer, "locks", 0), ms = redlock_line_number(answer, "in_ms", NO_END);
	char age[AGE_BYTES];

	(void)in;
	printf("the daemon grants nothing new; it stops when nobody holds anything");
	if (ms >= 0)
		printf(", or in %s", age_text(ms, age));
	printf(" (%" PRId64 " %s held)\n", locks, locks == 1 ? "lock is" : "locks are");
}

/* Waits until the daemon ends the connection. If it breaks before the daemon has said that it stops, there may be another cause. */
static int drain_await(struct redlock *c)
{
	const struct redlock_line *push;
	bool now = false;

	while (!redlock_wait_push(c, REDLOCK_FOREVER, &push))
		if (redlock_line_is(push, "DRAIN"))
			now = redlock_line_number(push, "in_ms", NO_END) == 0;
	if (!now)
		complain("%s; the daemon has not said that it stops", redlock_errmsg(c));
	return now ? EXIT_SUCCESS : EX_UNAVAILABLE;
}

int drain_ask(struct redlock *c, const struct invocation *in)
{
	int r = in->stay ? exit_of(c, redlock_subscribe(c)) : 0;

	if (!r)
		r = answer_print(c, in, redlock_drain(c, in->in_ms, NULL), drain_print);
	if (r || !in->stay)
		return r;
	return output_flush() ? drain_await(c) : EX_UNAVAILABLE;
}

/* --- rate: one more use of a rate limit --- */

static void rate_print(const struct redlock_rate *rate, int outcome)
{
	char age[AGE_BYTES];

	if (outcome == REDLOCK_TIMEOUT)
		printf("refused: the wait is over; again in %s\n", age_text(rate->retry_ms, age));
	else if (outcome == REDLOCK_BUSY)
		printf("refused: again in %s, %" PRId64 " left\n", age_text(rate->retry_ms, age), rate->left);
	else if (rate->unmetered)
		printf("admitted without being counted: the store that keeps this limit cannot be used\n");
	else
		printf("admitted: %" PRId64 " left, all of them in %s\n", rate->left, age_text(rate->reset_ms, age));
}

int rate_ask(struct redlock *c, const struct invocation *in)
{
	struct redlock_rate rate;
	int r = redlock_rate_wait(c, in->operand, in->limit, in->per_ms, in->cost, in->wait_given ? in->wait_ms : 0, &rate);

	if (r && r != REDLOCK_BUSY && r != REDLOCK_TIMEOUT)
		return exit_of(c, r);
	if (in->json)
		json_print_line(redlock_answer(c), false);
	else
		rate_print(&rate, r);
	return r ? EXIT_NO : EXIT_SUCCESS;
}

/* --- defer, retry, drop: one job of a queue --- */

static void deferred_print(const struct redlock_line *answer, const struct invocation *in)
{
	struct span id = field_of(answer, "job");

	(void)in;
	printf("%.*s\n", (int)id.n, id.p ? id.p : "");
}

static int defer(const struct invocation *in, struct redlock_bytes payload)
{
	const struct redlock_deferral options = {.size = sizeof(options), .delay_ms = in->delay_ms, .lock = in->lock, .id = in->id};
	struct redlock *c = dial(in->addr);
	int r = c ? answer_print(c, in, redlock_defer(c, in->operand, payload, &options, NULL), deferred_print) : EX_UNAVAILABLE;

	redlock_close(c);
	return r;
}

/* The payload is an operand, or else the whole input. */
int defer_main(const struct invocation *in)
{
	static char input[PAYLOAD_MAX + 1];
	struct redlock_bytes payload = {input, 0};

	if (in->names_n > 1)
		payload = (struct redlock_bytes){in->names[1], strlen(in->names[1])};
	else
		payload.n = fread(input, 1, sizeof(input), stdin);
	if (ferror(stdin))
		complain("cannot read the input: %s", strerror(errno));
	else if (payload.n > PAYLOAD_MAX && payload.p == input)
		complain("the input is too long: a payload has at most %d bytes", PAYLOAD_MAX);
	else
		return defer(in, payload);
	return EX_USAGE;
}

int retry_ask(struct redlock *c, const struct invocation *in)
{
	return answer_print(c, in, redlock_retry(c, in->operand, in->names[1], in->delay_ms), NULL);
}

int drop_ask(struct redlock *c, const struct invocation *in)
{
	return answer_print(c, in, redlock_drop(c, in->operand, in->names[1]), NULL);
}

/* --- ping: whether the daemon answers, and whether a quorum of its stores works --- */

struct health {
	char server[64], store[32];
	int64_t nodes, quorum, serving;
	bool has_quorum;
	int64_t rtt_us;
	char trouble[256]; /* causes, each after a blank */
};

static void health_row(void *arg, const struct redlock_line *row)
{
	int64_t value = redlock_line_number(row, "value", 0);
	struct health *h = arg;
	size_t at = strlen(h->trouble);
	char cause[64];

	if (field_is(row, "metric", "quorum_available"))
		h->has_quorum = value > 0;
	if (field_is(row, "metric", "redis_up"))
		h->serving += value;
	if (!field_is(row, "metric", "redis_trouble"))
		return;
	field_show(row, "cause", cause, sizeof(cause));
	snprintf(h->trouble + at, sizeof(h->trouble) - at, " %s", cause);
}

static void health_print(const struct health *h, bool json)
{
	char rtt[RTT_BYTES];

	if (!json) {
		printf("%s  %s  %s %" PRId64 "/%" PRId64 "  quorum %" PRId64 "  rtt %s%s%s\n", h->has_quorum ? "ok" : "no quorum", h->server, h->store,
		       h->serving, h->nodes, h->quorum, rtt_text(h->rtt_us, rtt), h->trouble[0] ? "  trouble:" : "", h->trouble);
		return;
	}
	json_print_text("{\"server\":", h->server);
	json_print_text(",\"store\":", h->store);
	printf(",\"nodes\":%" PRId64 ",\"joined\":%" PRId64 ",\"quorum\":%" PRId64 ",\"rtt_us\":%" PRId64, h->nodes, h->serving, h->quorum, h->rtt_us);
	json_print_text(",\"trouble\":", h->trouble[0] ? h->trouble + 1 : "");
	puts("}");
}

int ping_ask(struct redlock *c, const struct invocation *in)
{
	int r = hello(c, "redlock ping");
	const struct redlock_line *answer = redlock_answer(c);
	struct health h = {.serving = 0};

	if (!r) {
		field_show(answer, "server", h.server, sizeof(h.server));
		field_show(answer, "store", h.store, sizeof(h.store));
		h.nodes = redlock_line_number(answer, "nodes", 0);
		h.quorum = redlock_line_number(answer, "quorum", 0);
		h.rtt_us = -redlock_now_us();
		r = redlock_ping(c);
		h.rtt_us += redlock_now_us();
	}
	if (!r)
		r = redlock_stats(c, health_row, &h);
	if (r) {
		complain("%s%s", redlock_errmsg(c), silence_hint(r));
		return EX_UNAVAILABLE;
	}
	health_print(&h, in->json);
	return h.has_quorum ? EXIT_SUCCESS : EXIT_NO;
}
