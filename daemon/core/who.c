/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/who.h"

#include "proto/decimal.h"

#include <inttypes.h>

struct span session_address(const struct session *s)
{
	return s->at_unix ? SPAN(UNIX_ADDRESS) : span_of(s->address ? s->address : "");
}

struct span session_subject(const struct session *s)
{
	return span_of(s->has_subject ? s->address + strlen(s->address) + 1 : "");
}

static char *who_text(char *at, struct span text)
{
	memcpy(at, text.p, text.n);
	return at + text.n;
}

static char *who_number(char *at, struct span word, int64_t number)
{
	char digits[DECIMAL_MAX], *end = digits + DECIMAL_MAX, *first = decimal_write_signed(end, number);

	at = who_text(at, word);
	return who_text(at, (struct span){first, (size_t)(end - first)});
}

/* Each refusal, row and loss shows the holder, so this is written by hand. */
size_t session_who(const struct session *s, char *out)
{
	const struct session *whose = s->principal ? s->principal : s;
	struct span address = session_address(whose);
	char *at = out;

	_Static_assert(256 + 1 + 2 * (5 + DECIMAL_MAX) <= WHO_MAX, "there is room for the longest label and two numbers; an address is no longer");
	if (whose->label) {
		at = who_text(at, span_of(whose->label));
		*at++ = ' ';
	}
	if (whose->is_unix) {
		at = who_number(at, SPAN("pid="), whose->pid);
		at = who_number(at, SPAN(" uid="), whose->uid);
	} else if (address.n == 0) {
		at = who_number(at, SPAN("session="), (int64_t)whose->serial);
	} else {
		at = who_text(at, address);
	}
	return (size_t)(at - out);
}

void session_ended(struct session_table *t, const struct session *s, const char *reason)
{
	char who[WHO_MAX];

	if (core_may_log(t->core, BURST_HANGUP))
		core_log(t->core, LOG_INFO, "hang-up", "peer=%s session=%" PRIu64 " reason=%s held=%u waiting=%u",
		         core_quoted(t->core, (struct span){who, session_who(s, who)}), s->serial, reason, s->held, s->waiting);
}
