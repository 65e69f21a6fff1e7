/* SPDX-License-Identifier: BSD-2-Clause */
/* complete and recent: names, one a line. A name with blanks or control characters is quoted as the protocol does, so that it can be used again. */
#include "client/cli/command/commands.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/json.h"
#include "proto/proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void name_row(void *arg, const struct redlock_line *row)
{
	struct redlock_bytes name = redlock_line_find(row, "name");
	char quoted[4 * NAME_MAX_BYTES + 3];
	const bool *json = arg;

	if (*json)
		json_print_line(row, false);
	else if (name.p && !redlock_quote(name, quoted, sizeof(quoted)))
		printf("%s\n", quoted);
}

/* Sends a line with the operand between these words, and prints the rows. */
static int names_ask(const struct invocation *in, const char *begin, const char *operand, const char *end)
{
	char quoted[4 * NAME_MAX_BYTES + 3], line[sizeof(quoted) + 32];
	bool json = in->json;
	struct redlock *c;
	int r;

	if (strlen(operand) > NAME_MAX_BYTES || redlock_quote((struct redlock_bytes){operand, strlen(operand)}, quoted, sizeof(quoted))) {
		complain("a name has 1 to %d bytes", NAME_MAX_BYTES);
		return EX_USAGE;
	}
	snprintf(line, sizeof(line), "%s%s%s", begin, quoted, end);
	c = dial(in->addr);
	if (!c)
		return EX_UNAVAILABLE;
	r = exit_of(c, redlock_request(c, line, 0, name_row, &json));
	redlock_close(c);
	return r;
}

int complete_main(const struct invocation *in)
{
	return names_ask(in, "COMPLETE ", in->operand ? in->operand : "", " limit=1000");
}

int recent_main(const struct invocation *in)
{
	return names_ask(in, "RECENT prefix=", in->operand ? in->operand : "", "");
}
