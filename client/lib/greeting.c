/* SPDX-License-Identifier: BSD-2-Clause */
/* See greeting.h. */
#include "client/lib/greeting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define TIMES_BYTES 80 /* " heartbeat=…ms grace=…ms" */

int greeting_hello(struct greeting *g, const struct redlock_session *session, char out[HELLO_BYTES])
{
	size_t n = (size_t)snprintf(out, HELLO_BYTES, "HELLO 1"), quoted;

	if (session->label) {
		n += (size_t)snprintf(out + n, HELLO_BYTES - n, " name=");
		quoted = quote(span_of(session->label), out + n, HELLO_BYTES - n - TIMES_BYTES);
		if (!quoted)
			return -EMSGSIZE;
		n += quoted;
		out[n] = '\0';
	}
	if (session->heartbeat_ms > 0)
		n += (size_t)snprintf(out + n, HELLO_BYTES - n, " heartbeat=%" PRId64 "ms", session->heartbeat_ms);
	if (session->grace_ms > 0 || g->resumes)
		snprintf(out + n, HELLO_BYTES - n, " grace=%" PRId64 "ms", session->grace_ms);
	g->grace = session->grace_ms > 0;
	return 0;
}

static void word_take(const struct reply_line *line, const char *field, char *out, size_t size)
{
	struct span word = reply_find(line, field);

	if (word.p && word.n < size)
		snprintf(out, size, "%.*s", (int)word.n, word.p);
}

void greeting_named(struct greeting *g, const struct reply_line *answer)
{
	word_take(answer, "session", g->session, sizeof(g->session));
	word_take(answer, "secret", g->secret, sizeof(g->secret));
}

void greeting_agreed(struct greeting *g, struct span hello, const struct reply_line *answer)
{
	snprintf(g->hello, sizeof(g->hello), "%.*s", (int)hello.n, hello.p);
	g->bare_n = (size_t)((char *)memrchr(g->hello, ' ', strlen(g->hello)) - g->hello); /* the grace is the last field */
	greeting_named(g, answer);
	g->resumes = g->grace && g->secret[0];
	g->graceless = false;
	g->owner = getpid();
}

size_t greeting_resume(const struct greeting *g, char out[RESUME_BYTES])
{
	return g->secret[0] ? (size_t)snprintf(out, RESUME_BYTES, "RESUME %s %s", g->session, g->secret) : 0;
}

bool greeting_is_gone(const struct reply_line *refusal)
{
	return span_equal(refusal->code, SPAN("NOTFOUND")) || span_equal(refusal->code, SPAN("UNKNOWN")) ||
	       span_equal(refusal->code, SPAN("ARG"));
}

const char *greeting_lose(struct greeting *g)
{
	const char *reason = g->graceless ? "evicted" : "expired";

	g->graceless = false;
	g->session[0] = g->secret[0] = '\0';
	return reason;
}

bool greeting_waives(struct greeting *g, const struct reply_line *refusal)
{
	bool refused = span_equal(refusal->code, SPAN("LIMIT")) || span_equal(refusal->code, SPAN("ARG"));

	if (g->graceless || !refused)
		return false;
	g->graceless = true;
	return true;
}
