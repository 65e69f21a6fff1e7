/* SPDX-License-Identifier: BSD-2-Clause */
/* See or_defer.h. */
#include "client/cli/run/or_defer.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <string.h>

#define TEXT_MOST (PAYLOAD_MAX - 1) /* bytes of a command line that is deferred, without the LF behind it */

/* Appends a word of a command line, so that a shell reads it as it is. False: it does not fit. */
static bool word_add(char *out, size_t *at, const char *word)
{
	size_t n = *at;

	if (n + 3 > TEXT_MOST) /* an empty word has that many bytes, too */
		return false;
	if (n > 0)
		out[n++] = ' ';
	out[n++] = '\'';
	for (; *word; word++) {
		if (n + 8 > TEXT_MOST)
			return false;
		if (*word == '\'') {
			memcpy(out + n, "'\\''", 4);
			n += 4;
		} else {
			out[n++] = *word;
		}
	}
	out[n++] = '\'';
	*at = n;
	return true;
}

bool or_defer(const struct invocation *in, struct redlock *c)
{
	struct redlock_deferral options = {.size = sizeof(options), .lock = in->operand};
	static char text[PAYLOAD_MAX];
	char id[REDLOCK_JOB_BYTES], name[200];
	size_t n = 0;
	int r;

	for (char **word = in->argv; *word; word++) {
		if (word_add(text, &n, *word))
			continue;
		complain("the command line is too long to be deferred: %d bytes at most", TEXT_MOST);
		return false;
	}
	text[n++] = '\n';
	r = redlock_defer(c, in->defer_to, (struct redlock_bytes){text, n}, &options, id);
	if (r) {
		complain("%s%s", redlock_errmsg(c), silence_hint(r));
		return false;
	}
	shown_text(span_of(in->defer_to), name, sizeof(name));
	if (!in->quiet)
		complain("deferred: job %s of %s", id, name);
	return true;
}
