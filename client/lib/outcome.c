/* SPDX-License-Identifier: BSD-2-Clause */
/* See outcome.h. */
#include "client/lib/outcome.h"
#include "client/lib/display.h"

#include <stdio.h>

#define SHOWN_BYTES 200
#define HOST_BYTES  48 /* of these, for the name of a host */

/* Nobody holds it: whoever did left it taken for a while. */
static void kept_text(const struct reply_line *answer, const char *name, char *out)
{
	struct span by = reply_find(answer, "kept_by");
	char host[SHOWN_BYTES] = "", more[AGE_BYTES], ago[AGE_BYTES];

	if (by.p)
		shown_text(by, host, sizeof(host));
	snprintf(out, MESSAGE_BYTES, "%s is kept for %s more since it ran %s ago%s%s", name, age_text(reply_number(answer, "retry_ms", 0), more),
	         age_text(reply_number(answer, "kept_ms", 0), ago), by.p ? " on " : "", host);
}

/* "worker 7 pid=1 uid=2 @db3": of a holder on another host who it is, as far as that host has told. */
static void holder_text(const struct reply_line *answer, char out[SHOWN_BYTES])
{
	struct span holder = reply_find(answer, "holder"), who = reply_find(answer, "who");
	size_t at = who.p ? shown_text(who, out, SHOWN_BYTES - HOST_BYTES) : 0;

	if (at > 0)
		out[at++] = ' ';
	shown_text(holder.p ? holder : SPAN("somebody else"), out + at, SHOWN_BYTES - at);
}

static void busy_text(const struct reply_line *answer, char *out)
{
	struct span name = reply_find(answer, "name"), holder = reply_find(answer, "holder");
	int64_t held = reply_number(answer, "held_ms", -1);
	char shown[SHOWN_BYTES], by[SHOWN_BYTES], age[AGE_BYTES];

	shown_text(name, shown, sizeof(shown));
	if (!holder.p && reply_number(answer, "kept_ms", -1) >= 0) {
		kept_text(answer, shown, out);
		return;
	}
	holder_text(answer, by);
	if (held < 0)
		snprintf(out, MESSAGE_BYTES, "%s is held by %s", shown, by);
	else
		snprintf(out, MESSAGE_BYTES, "%s is held by %s for %s", shown, by, age_text(held, age));
}

static void timeout_text(const struct reply_line *answer, char *out)
{
	char shown[SHOWN_BYTES], age[AGE_BYTES];

	shown_text(reply_find(answer, "name"), shown, sizeof(shown));
	snprintf(out, MESSAGE_BYTES, "%s was not free within %s", shown, age_text(reply_number(answer, "waited_ms", 0), age));
}

static void refused_text(const struct reply_line *answer, char *code, char *out)
{
	char shown[MESSAGE_BYTES - CODE_BYTES];

	shown_text(answer->code, code, CODE_BYTES);
	shown_text(answer->text, shown, sizeof(shown));
	snprintf(out, MESSAGE_BYTES, "%s %s", code, shown);
}

int outcome_of(const struct reply_line *answer, char ret_code[CODE_BYTES], char ret_message[MESSAGE_BYTES])
{
	switch (answer->kind) {
	case LINE_BUSY:
		busy_text(answer, ret_message);
		return REDLOCK_BUSY;
	case LINE_TIMEOUT:
		timeout_text(answer, ret_message);
		return REDLOCK_TIMEOUT;
	case LINE_ERR:
		refused_text(answer, ret_code, ret_message);
		return REDLOCK_REFUSED;
	default:
		return REDLOCK_OK;
	}
}
