/* SPDX-License-Identifier: BSD-2-Clause */
/* rate: one more use of a rate limit, for scripts. The exit code says whether it is within the limit. */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/json.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void rate_person(const struct redlock_rate *rate, int outcome)
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

int rate_main(const struct invocation *in)
{
	size_t n = strlen(in->operand);
	struct redlock_rate rate;
	struct redlock *c;
	int r;

	if (n < 1 || n > NAME_MAX_BYTES || in->limit < 1 || in->per_ms < 1) {
		complain(n < 1 || n > NAME_MAX_BYTES ? "a name has 1 to 512 bytes" : "rate needs --limit and --per, as in --limit 20 --per 60s");
		return EX_USAGE;
	}
	c = dial(in->addr);
	if (!c)
		return EX_UNAVAILABLE;
	r = redlock_rate_wait(c, in->operand, in->limit, in->per_ms, in->cost, in->wait_given ? in->wait_ms : 0, &rate);
	if (r && r != REDLOCK_BUSY && r != REDLOCK_TIMEOUT) {
		r = exit_of(c, r);
		redlock_close(c);
		return r;
	}
	if (in->json)
		json_print_line(redlock_answer(c), false);
	else
		rate_person(&rate, r);
	redlock_close(c);
	return r ? EXIT_NO : EXIT_SUCCESS;
}
