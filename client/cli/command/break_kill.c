/* SPDX-License-Identifier: BSD-2-Clause */
/* break and kill: for administrators. */
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

static void broken_person(const struct redlock_line *answer, const char *operand)
{
	int64_t ms = redlock_line_number(answer, "free_in_ms", 0);
	char shown[200], age[AGE_BYTES];

	shown_text(span_of(operand), shown, sizeof(shown));
	if (ms > 0)
		printf("%s is broken; it is free in %s, or when its holder has acknowledged the loss\n", shown, age_text(ms, age));
	else if (ms < 0)
		printf("%s is broken; it is free when its holder has acknowledged the loss: its key never expires\n", shown);
	else
		printf("%s is broken, and free\n", shown);
}

static void killed_person(const struct redlock_line *answer, const char *operand)
{
	printf("session %s is ended; it held %" PRId64 "\n", operand, redlock_line_number(answer, "n", 0));
}

static int force(const struct invocation *in, const char *line, void (*person)(const struct redlock_line *answer, const char *operand))
{
	struct redlock *c = dial(in->addr);
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	r = exit_of(c, redlock_request(c, line, 0, NULL, NULL));
	if (!r && in->json)
		json_print_line(redlock_answer(c), false);
	else if (!r)
		person(redlock_answer(c), in->operand);
	redlock_close(c);
	return r;
}

int break_main(const struct invocation *in)
{
	char line[4 * NAME_MAX_BYTES + 16] = "BREAK ";

	if (redlock_quote((struct redlock_bytes){in->operand, strlen(in->operand)}, line + 6, sizeof(line) - 6)) {
		complain("a name has 1 to %d bytes", NAME_MAX_BYTES);
		return EX_USAGE;
	}
	return force(in, line, broken_person);
}

int kill_main(const struct invocation *in)
{
	size_t n = strlen(in->operand);
	char line[64];

	if (n == 0 || n > 15 || strspn(in->operand, "0123456789") != n) {
		complain("'%.40s' is no session: redlock clients shows their numbers", in->operand);
		return EX_USAGE;
	}
	snprintf(line, sizeof(line), "KILL session=%s", in->operand);
	return force(in, line, killed_person);
}
