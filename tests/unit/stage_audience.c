/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of the stage: who says what to which daemon, and what each was told and has not been asked about yet. */
#include "daemon/base/mem.h"
#include "tests/unit/stage_part.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct heard {
	TAILQ_ENTRY(heard) link;
	char text[]; /* without its LF */
};
TAILQ_HEAD(heard_list, heard);

static struct member_of_audience {
	bool open, mute; /* mute: it was hung up on, or its daemon is no more */
	bool afar, no_reading, half;
	bool awaited, away;
	unsigned daemon, asked, answered;
	struct heard_list lines;
} audience[STAGE_SESSIONS];
static struct heard_list logged;

static void heard_add(struct heard_list *list, const char *p, size_t n)
{
	struct heard *h = mem_alloc(sizeof(*h) + n + 1);

	memcpy(h->text, p, n);
	TAILQ_INSERT_TAIL(list, h, link);
}

static unsigned heard_clear(struct heard_list *list)
{
	struct heard *h;
	unsigned n = 0;

	for (; (h = TAILQ_FIRST(list)); n++) {
		TAILQ_REMOVE(list, h, link);
		free(h);
	}
	return n;
}

void audience_opens(void)
{
	TAILQ_INIT(&logged);
	for (unsigned k = 0; k < STAGE_SESSIONS; k++) {
		audience[k] = (struct member_of_audience){0};
		TAILQ_INIT(&audience[k].lines);
	}
}

void audience_closes(void)
{
	heard_clear(&logged);
	for (unsigned k = 0; k < STAGE_SESSIONS; k++)
		heard_clear(&audience[k].lines);
}

/* --- what the daemon does to a session --- */

static bool line_is_reply(const char *line)
{
	if (*line == '@')
		line = strchr(line, ' ') + 1;
	return *line != '*' && *line != '!';
}

static bool is_dropped(uint64_t session)
{
	return session < STAGE_SESSIONS && audience[session].mute && stage.daemon[audience[session].daemon].ending;
}

void audience_hears(uint64_t session, struct span bytes)
{
	const char *end;

	if (is_dropped(session))
		return;
	ck_assert_msg(session < STAGE_SESSIONS && audience[session].open && !audience[session].mute,
		      "session %u is gone and still told: %.*s", (unsigned)session, (int)bytes.n, bytes.p);
	for (; bytes.n; bytes.n -= (size_t)(end + 1 - bytes.p), bytes.p = end + 1) {
		struct heard *h;

		end = memchr(bytes.p, '\n', bytes.n);
		ck_assert_ptr_nonnull(end);
		heard_add(&audience[session].lines, bytes.p, (size_t)(end - bytes.p));
		h = TAILQ_LAST(&audience[session].lines, heard_list);
		audience[session].answered += line_is_reply(h->text);
		promise_line((unsigned)session, h->text);
	}
}

void audience_is_hung_up(uint64_t session, struct span reason)
{
	bool sure = span_equal(reason, SPAN("quit")) || span_equal(reason, SPAN("eof"));

	if (is_dropped(session))
		return;
	ck_assert_msg(audience[session].open && !audience[session].mute, "session %u is hung up on twice", (unsigned)session);
	audience[session].mute = true;
	promise_end((unsigned)session, sure);
}

void audience_is_awaited(uint64_t session)
{
	ck_assert_msg(audience[session].open && !audience[session].awaited, "session %u is awaited twice", (unsigned)session);
	audience[session].awaited = true;
}

bool audience_reads(void)
{
	bool any = false;

	for (unsigned k = 1; k < STAGE_SESSIONS; k++) {
		struct event event = {.kind = EVENT_SENT, .session = {.id = k}};
		struct member_of_audience *s = &audience[k];

		if (!s->awaited || !s->open || s->mute || s->away || stage.daemon[s->daemon].stopped)
			continue;
		s->awaited = false;
		any = true;
		ck_assert_int_eq(daemon_step(s->daemon, &event), 0);
	}
	return any;
}

void audience_is_read(uint64_t session, bool on)
{
	ck_assert_msg(audience[session].no_reading == on, "reading of session %u is switched to what it was", (unsigned)session);
	audience[session].no_reading = !on;
}

void audience_log(const char *event, struct span text)
{
	char line[2048];
	int n = snprintf(line, sizeof(line), "%s %.*s", event, (int)text.n, text.p);

	heard_add(&logged, line, (size_t)n);
}

bool was_logged(const char *pattern)
{
	struct heard *h;
	bool found = false;

	TAILQ_FOREACH(h, &logged, link)
	found |= fnmatch(pattern, h->text, 0) == 0;
	heard_clear(&logged);
	return found;
}

/* --- what a session does --- */

static void audience_open(unsigned k, unsigned d, bool afar)
{
	const struct peer local = {.is_unix = true, .is_local = true, .pid = 1000 + k, .uid = 1000, .address = "unix"};
	const struct peer remote = {.pid = -1, .uid = -1, .address = "10.0.0.5:40000"};
	struct event event = {.kind = EVENT_OPEN, .session = {.id = k, .peer = afar ? &remote : &local}};
	struct member_of_audience *s = &audience[k];

	ck_assert_msg(k > 0 && !s->open, "session %u is open already", k);
	heard_clear(&s->lines);
	*s = (struct member_of_audience){.open = true, .afar = afar, .daemon = d, .lines = s->lines};
	TAILQ_INIT(&s->lines);
	ck_assert_int_eq(daemon_step(d, &event), 0);
	runs();
}

void session_opens(unsigned k, unsigned d)
{
	audience_open(k, d, false);
}

void session_opens_from_afar(unsigned k, unsigned d)
{
	audience_open(k, d, true);
}

void says_bytes(unsigned k, const char *line, size_t n)
{
	char *bytes = mem_copy(line, n);
	struct event event = {.kind = EVENT_LINE, .session = {.id = k, .line = bytes, .n = n}};

	if (!audience[k].open)
		session_opens(k, 0);
	audience[k].asked++;
	promise_request(k, bytes);
	ck_assert_int_eq(daemon_step(audience[k].daemon, &event), 0);
	free(bytes);
	runs();
}

void says(unsigned k, const char *format, ...)
{
	char line[LINE_MAX_DEFAULT];
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	says_bytes(k, line, (size_t)n);
}

void says_too_much(unsigned k)
{
	struct event event = {.kind = EVENT_TOO_LONG, .session = {.id = k}};

	if (!audience[k].open)
		session_opens(k, 0);
	audience[k].asked++;
	ck_assert_int_eq(daemon_step(audience[k].daemon, &event), 0);
	runs();
}

void half_closes(unsigned k)
{
	struct event event = {.kind = EVENT_EOF, .session = {.id = k}};

	audience[k].half = true;
	ck_assert_int_eq(daemon_step(audience[k].daemon, &event), 0);
	runs();
}

void parts(unsigned k)
{
	struct event event = {.kind = EVENT_PARTING, .session = {.id = k}};

	audience[k].half = true;
	ck_assert_int_eq(daemon_step(audience[k].daemon, &event), 0);
	runs();
}

void looks_away(unsigned k)
{
	audience[k].away = true;
}

void looks_again(unsigned k)
{
	audience[k].away = false;
	runs();
}

void goes(unsigned k, enum gone how)
{
	struct event event = {.kind = EVENT_GONE, .session = {.id = k, .how = how}};
	struct member_of_audience *s = &audience[k];
	bool hung_up_before = s->mute;

	passes(0); /* what is due is told before */
	promise_end(k, how == GONE_HANGUP || (how == GONE_RESET && (!s->afar || s->half)));
	s->open = false;
	if (s->mute && !hung_up_before)
		return;
	ck_assert_int_eq(daemon_step(s->daemon, &event), 0);
	runs();
}

bool hung_up(unsigned k)
{
	return audience[k].mute;
}

bool is_read(unsigned k)
{
	return !audience[k].no_reading;
}

unsigned unanswered(unsigned k)
{
	return audience[k].asked - audience[k].answered;
}

void audience_loses_daemon(unsigned d)
{
	for (unsigned k = 1; k < STAGE_SESSIONS; k++) {
		if (audience[k].open && audience[k].daemon == d) {
			audience[k].open = false;
			promise_end(k, false);
		}
	}
}

void audience_leaves(unsigned d)
{
	for (unsigned k = 1; k < STAGE_SESSIONS; k++) {
		if (!audience[k].open || audience[k].daemon != d)
			continue;
		if (audience[k].mute)
			audience[k].open = false;
		else
			goes(k, GONE_HANGUP);
	}
}

/* --- what a session was told --- */

static const char *taken(struct heard_list *list)
{
	static char text[4][REPLY_MAX];
	static unsigned at;
	struct heard *h = TAILQ_FIRST(list);
	char *to = text[at++ % 4];

	snprintf(to, REPLY_MAX, "%s", h->text);
	TAILQ_REMOVE(list, h, link);
	free(h);
	return to;
}

const char *session_hears(unsigned k, const char *pattern, const char *file, int line)
{
	struct heard *h = TAILQ_FIRST(&audience[k].lines);

	ck_assert_msg(h != NULL, "%s:%d: session %u was told nothing, expected: %s", file, line, k, pattern);
	ck_assert_msg(fnmatch(pattern, h->text, 0) == 0, "%s:%d: session %u was told: %s\n  expected: %s", file, line, k, h->text,
		      pattern);
	return taken(&audience[k].lines);
}

void session_hears_nothing(unsigned k, const char *file, int line)
{
	struct heard *h = TAILQ_FIRST(&audience[k].lines);

	ck_assert_msg(!h, "%s:%d: session %u was told: %s\n  expected nothing", file, line, k, h ? h->text : "");
}

const char *next_line(unsigned k)
{
	return TAILQ_FIRST(&audience[k].lines) ? taken(&audience[k].lines) : NULL;
}

unsigned ignores(unsigned k)
{
	return heard_clear(&audience[k].lines);
}

int64_t number_in(const char *line, const char *field)
{
	char copy[REPLY_MAX];
	struct reply_line reply;
	int64_t n;

	snprintf(copy, sizeof(copy), "%s", line);
	ck_assert_int_eq(reply_parse(copy, strlen(copy), &reply), 0);
	n = reply_number(&reply, field, INT64_MIN);
	ck_assert_msg(n != INT64_MIN, "no %s= in: %s", field, line);
	return n;
}

int64_t audience_asks(unsigned d, const char *metric)
{
	unsigned k = STAGE_SESSIONS - 1;
	char pattern[128];
	int64_t value = -1;

	snprintf(pattern, sizeof(pattern), "\\* metric=%s value=*", metric);
	session_opens(k, d);
	says(k, "STATS");
	while (TAILQ_FIRST(&audience[k].lines)) {
		const char *line = taken(&audience[k].lines);

		if (fnmatch(pattern, line, 0) == 0)
			value = number_in(line, "value");
	}
	goes(k, GONE_HANGUP);
	return value;
}

const char *store_state(unsigned d, unsigned node)
{
	static char text[2][512];
	static unsigned at;
	unsigned k = STAGE_SESSIONS - 1;
	char *to = text[at++ % 2];
	struct reply_line reply;
	char copy[REPLY_MAX];

	session_opens(k, d);
	says(k, "LIST nodes");
	for (unsigned i = 0; i < node; i++)
		taken(&audience[k].lines);
	snprintf(copy, sizeof(copy), "%s", taken(&audience[k].lines));
	ck_assert_int_eq(reply_parse(copy, strlen(copy), &reply), 0);
	snprintf(to, sizeof(text[0]), "%.*s%s%.*s", (int)reply_find(&reply, "state").n, reply_find(&reply, "state").p,
		 reply_find(&reply, "reason").p ? ": " : "", (int)reply_find(&reply, "reason").n,
		 reply_find(&reply, "reason").p ? reply_find(&reply, "reason").p : "");
	goes(k, GONE_HANGUP);
	return to;
}

void store_becomes(const char *state)
{
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), state);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	ck_assert(!key_is_there(0, "a"));
	says(1, "UNLOCK a");
	ignores(1);
}
