/* SPDX-License-Identifier: BSD-2-Clause */
/* See rows.h. */
#include "daemon/core/reply/rows.h"

#define BYTES_A_STEP ((size_t)256 << 10)

void row_begin(struct request_context *x, struct span tag, struct reply *r)
{
	reply_begin(r, session_line(x->sessions), tag, "*");
}

void row_end(struct request_context *x, struct session *s, struct reply *r)
{
	session_say(x->sessions, s, r->start, reply_end(r));
}

void rows_ended(struct request_context *x, struct reply *r, struct span tag, uint64_t n, int64_t more)
{
	reply_begin(r, session_line(x->sessions), tag, "OK");
	reply_int(r, "n", (int64_t)n);
	if (more >= 0)
		reply_int(r, "more", more);
}

void rows_done(struct request_context *x, struct session *s, struct span tag, uint64_t n, int64_t more)
{
	struct reply r;

	rows_ended(x, &r, tag, n, more);
	session_send(x->sessions, s, r.start, reply_end(&r));
}

bool rows_are_long(const struct request_context *x, size_t bytes)
{
	uint64_t most = x->core->conf.limits.output / 4;

	return most > 0 && bytes >= most;
}

bool rows_take_long(const struct request_context *x, size_t bytes)
{
	return bytes >= BYTES_A_STEP || rows_are_long(x, 4 * bytes);
}

void reply_session(const struct request_context *x, struct reply *r, const struct session *s)
{
	struct span address;

	s = s->principal ? s->principal : s;
	address = session_address(s);
	reply_int(r, "session", (int64_t)s->serial);
	if (s->label)
		reply_text(r, "name", span_of(s->label));
	if (address.n > 0)
		reply_text(r, "peer", address);
	if (s->is_unix) {
		reply_int(r, "pid", s->pid);
		reply_int(r, "uid", s->uid);
	}
	if (s->detached) {
		reply_ms(r, "detached_ms", instant_diff(x->core->now, s->lasting->detached_at));
		reply_ms(r, "grace_ms", instant_diff(s->lasting->grace.at, x->core->now));
	}
}

void reply_alarm(const struct request_context *x, struct reply *r, const void *about, enum alarm_kind kind)
{
	if (alarms_told(x->core, about, kind))
		reply_text(r, "alarm", kind == ALARM_HELD ? SPAN("held") : SPAN("waited"));
}

void reply_elsewhere(struct reply *r, const struct elsewhere *elsewhere)
{
	char host[sizeof(elsewhere->host) + 1] = "@";

	memcpy(host + 1, elsewhere->host, sizeof(elsewhere->host));
	if (elsewhere->foreign)
		reply_text(r, "holder", SPAN("foreign"));
	else if (elsewhere->host[0])
		reply_text(r, elsewhere->kept ? "kept_by" : "holder", span_of(host));
}

void reply_elsewhere_held(const struct request_context *x, struct reply *r, const struct elsewhere *elsewhere)
{
	if (elsewhere->held_us >= 0)
		reply_ms(r, elsewhere->kept ? "kept_ms" : "held_ms", elsewhere->held_us + instant_diff(x->core->now, elsewhere->at));
}
