/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ping: whether the daemon answers, and whether a quorum of its stores serves.
 */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/json.h"
#include "client/lib/display.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct health {
	char server[64], store[32];
	int64_t nodes, quorum, serving;
	bool has_quorum;
	int64_t rtt_us;
	char trouble[256]; /* causes, each behind a blank */
};

static void bytes_show(struct redlock_bytes bytes, char *out, size_t size)
{
	shown_text((struct span){bytes.p, bytes.n}, out, size);
}

static bool is(struct redlock_bytes text, const char *word)
{
	return text.n == strlen(word) && !memcmp(text.p, word, text.n);
}

static void trouble_add(struct health *h, const struct redlock_line *row)
{
	size_t at = strlen(h->trouble);
	char cause[64];

	bytes_show(redlock_line_find(row, "cause"), cause, sizeof(cause));
	snprintf(h->trouble + at, sizeof(h->trouble) - at, " %s", cause);
}

static void figure_row(void *arg, const struct redlock_line *row)
{
	struct redlock_bytes metric = redlock_line_find(row, "metric");
	int64_t value = redlock_line_number(row, "value", 0);
	struct health *h = arg;

	if (is(metric, "quorum_available"))
		h->has_quorum = value > 0;
	else if (is(metric, "redis_up"))
		h->serving += value;
	else if (is(metric, "redis_trouble"))
		trouble_add(h, row);
}

static int health_ask(struct redlock *c, struct health *h)
{
	int r = redlock_request(c, "HELLO 1 name=\"redlock ping\"", 0, NULL, NULL);
	const struct redlock_line *hello;
	int64_t before;

	if (r)
		return r;
	hello = redlock_answer(c);
	bytes_show(redlock_line_find(hello, "server"), h->server, sizeof(h->server));
	bytes_show(redlock_line_find(hello, "store"), h->store, sizeof(h->store));
	h->nodes = redlock_line_number(hello, "nodes", 0);
	h->quorum = redlock_line_number(hello, "quorum", 0);
	before = redlock_now_us();
	r = redlock_request(c, "PING", 0, NULL, NULL);
	h->rtt_us = redlock_now_us() - before;
	return r ? r : redlock_request(c, "STATS", 0, figure_row, h);
}

static void health_print(const struct health *h, bool json)
{
	if (!json) {
		printf("%s  %s  %s %" PRId64 "/%" PRId64 "  quorum %" PRId64 "  rtt %" PRId64 ".%02d ms%s%s\n", h->has_quorum ? "ok" : "no quorum",
		       h->server, h->store, h->serving, h->nodes, h->quorum, h->rtt_us / 1000, (int)(h->rtt_us % 1000 / 10),
		       h->trouble[0] ? "  trouble:" : "", h->trouble);
		return;
	}
	printf("{\"server\":");
	json_print_text(span_of(h->server));
	printf(",\"store\":");
	json_print_text(span_of(h->store));
	printf(",\"nodes\":%" PRId64 ",\"joined\":%" PRId64 ",\"quorum\":%" PRId64 ",\"rtt_us\":%" PRId64 ",\"trouble\":", h->nodes,
	       h->serving, h->quorum, h->rtt_us);
	json_print_text(span_of(h->trouble[0] ? h->trouble + 1 : ""));
	puts("}");
}

int ping_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	struct health h = {.serving = 0};
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	r = health_ask(c, &h);
	if (r)
		complain("%s%s", redlock_errmsg(c), silence_hint(r));
	redlock_close(c);
	if (r)
		return EX_UNAVAILABLE;
	health_print(&h, in->json);
	return h.has_quorum ? EXIT_SUCCESS : EXIT_NO;
}
