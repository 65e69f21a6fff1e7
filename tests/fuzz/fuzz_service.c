/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a story told to the service, a line each. The first byte says what happens:
 *   0-7 a line of that session (which is opened if need be)   e its end of input   g it is gone   t time passes   d u the store goes, comes
 *   R one session resumes another   k the daemon is killed and started anew on its journal, a byte of which may be changed
 *   K likewise, after the rest of the line was added to the journal as a record   j the journal cannot be written, or can again
 * Whatever the story: no session is told a smaller fence of a name than was told before, nor the same fence as another session, unless it said RESUME; a value
 * that was given up is not used again; and once all sessions are gone and their grace is over, nothing of them is left.
 */
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fixture/lone_service.h"
#include "tests/fixture/promises.h"

#include <strings.h>

#define SESSIONS 8
#define NAMES    256

struct known {
	char name[NAME_MAX_BYTES];
	size_t n;
	uint64_t session; /* the one that was told its last fence */
	bool shared;      /* readers ever held it: a push does not say whether its fence is that of one */
};

struct story {
	struct lone_service lone;
	struct promises promises;
	uint64_t generation[SESSIONS];
	bool open[SESSIONS];
	struct known known[NAMES];
	unsigned names;
	char resume[SESSIONS][80]; /* the RESUME for the last session of this slot that was told a secret */
	bool resumes[SESSIONS];    /* the slot has said RESUME: it may hold, and lock again, what it was not told of yet */
};

static struct known *name_known(struct story *s, struct span name)
{
	unsigned i;

	for (i = 0; i < s->names; i++)
		if (span_equal((struct span){s->known[i].name, s->known[i].n}, name))
			return &s->known[i];
	if (s->names == NAMES || name.n > NAME_MAX_BYTES)
		return NULL;
	s->known[s->names] = (struct known){.n = name.n};
	memcpy(s->known[s->names].name, name.p, name.n);
	return &s->known[s->names++];
}

/* A row of RESUME, or SAFE when a lock is confirmed later: the lock of another session is now held by this one. */
static void promise_row(struct story *s, uint64_t session, const struct reply_line *line)
{
	struct span name = reply_find(line, "name");
	int64_t fence = reply_number(line, "fence", -1);
	struct known *known = name.n && fence >= 0 && reply_number(line, "valid_ms", -1) >= 0 && !reply_find(line, "held_ms").p ? name_known(s, name) : NULL;

	if (!known || (known->shared && line->kind == LINE_PUSH))
		return;
	if (span_equal(reply_find(line, "mode"), SPAN("shared"))) {
		promise_fence_of_reader(&s->promises, name, fence);
		known->shared = true;
		return;
	}
	promise_fence_is_last(&s->promises, name, fence);
	known->session = session;
}

static void secret_keep(struct story *s, uint64_t session, const struct reply_line *line)
{
	struct span secret = reply_find(line, "secret");

	if (line->kind == LINE_OK && secret.n == 32)
		snprintf(s->resume[session & 7], sizeof(s->resume[0]), "RESUME %lld %.*s", (long long)reply_number(line, "session", 0),
			 (int)secret.n, secret.p);
}

/* An OK with a fence says that this session holds the name. */
static void promise_fence(struct story *s, uint64_t session, const struct reply_line *line)
{
	struct span name = reply_find(line, "name");
	int64_t fence = reply_number(line, "fence", -1);
	struct known *known = line->kind == LINE_OK && name.n && fence >= 0 ? name_known(s, name) : NULL;

	if (!known)
		return;
	if (span_equal(reply_find(line, "mode"), SPAN("shared"))) {
		promise_fence_of_reader(&s->promises, name, fence);
		known->shared = true;
		return;
	}
	PROMISE(fence != promise_last_fence(&s->promises, name) || session == known->session || s->resumes[session & 7]);
	promise_fence_is_last(&s->promises, name, fence);
	known->session = session;
}

static void line_sent(void *context, uint64_t session, struct span bytes)
{
	const char *end;
	static char line[LINE_MAX_DEFAULT];
	struct reply_line reply;

	for (; bytes.n; bytes.n -= (size_t)(end + 1 - bytes.p), bytes.p = end + 1) {
		end = memchr(bytes.p, '\n', bytes.n);
		PROMISE(end && end - bytes.p < LINE_MAX_DEFAULT);
		memcpy(line, bytes.p, (size_t)(end - bytes.p));
		PROMISE(reply_parse(line, (size_t)(end - bytes.p), &reply) == 0);
		PROMISE(end - bytes.p < REPLY_MAX || reply_find(&reply, "payload").p);
		promise_fence(context, session, &reply);
		secret_keep(context, session, &reply);
		if (reply.kind == LINE_ROW || reply.kind == LINE_PUSH)
			promise_row(context, session, &reply);
	}
}

static void session_hung_up(void *context, uint64_t session)
{
	struct story *s = context;

	PROMISE(s->open[session & 7]);
	s->open[session & 7] = false;
}

static void store_called(void *context, const struct call *call)
{
	struct story *s = context;

	promise_call(&s->promises, call);
}

static void promise_broken(const char *text)
{
	fprintf(stderr, "broken promise: %s\n", text);
	abort();
}

static uint64_t session_id(const struct story *s, unsigned slot)
{
	return s->generation[slot] << 32 | slot;
}

static bool line_resumes(const char *line, size_t n)
{
	for (size_t i = 0; i + 6 <= n; i++)
		if (strncasecmp(line + i, "RESUME", 6) == 0)
			return true;
	return false;
}

static void session_line(struct story *s, unsigned slot, const uint8_t *text, size_t n)
{
	static char line[LINE_MAX_DEFAULT];

	if (!s->open[slot]) {
		s->generation[slot]++;
		s->open[slot] = true;
		s->resumes[slot] = false;
		PROMISE(lone_service_open(&s->lone, session_id(s, slot)) == 0);
	}
	n = n < sizeof(line) ? n : sizeof(line);
	memcpy(line, text, n);
	s->resumes[slot] |= line_resumes(line, n);
	lone_service_line(&s->lone, session_id(s, slot), line, n);
}

static void session_end(struct story *s, unsigned slot, bool gone)
{
	if (!s->open[slot])
		return;
	if (!gone) {
		lone_service_eof(&s->lone, session_id(s, slot));
		return;
	}
	s->open[slot] = false;
	PROMISE(lone_service_gone(&s->lone, session_id(s, slot), GONE_HANGUP) == 0);
}

static void session_resume(struct story *s, unsigned from, unsigned to)
{
	if (s->resume[from][0])
		session_line(s, to, (const uint8_t *)s->resume[from], strlen(s->resume[from]));
}

/* A damaged journal may say anything: then nothing that was known before counts. */
static void daemon_restart(struct story *s, const uint8_t *text, size_t n)
{
	size_t length = buf_length(&s->lone.journal);
	bool sound = true;

	if (text[0] == 'K') {
		lone_service_journal(&s->lone, (struct span){(const char *)text + 1, n - 1});
		sound = false;
	} else if (n > 3 && length > 0) {
		size_t at = (size_t)(text[1] * 256 + text[2]) % length;
		uint32_t record;
		size_t begin = 0;

		/* A byte of a length stays as it is: lengths belong to the file, and the service never sees them. */
		for (;; begin += sizeof(record) + record) {
			memcpy(&record, buf_begin(&s->lone.journal) + begin, sizeof(record));
			if (at < begin + sizeof(record) + record)
				break;
		}
		if (at >= begin + sizeof(record))
			buf_begin(&s->lone.journal)[at] ^= (char)text[3];
		sound = false;
	}
	if (!sound) {
		s->names = 0;
		promises_init(&s->promises, promise_broken);
	}
	memset(s->open, 0, sizeof(s->open));
	PROMISE(lone_service_restart(&s->lone) || !sound);
}

static void journal_turn(struct story *s, bool ok)
{
	struct event event = {.kind = EVENT_JOURNAL, .journal = {.ok = ok}};

	if (ok) {
		buf_clear(&s->lone.journal);
		service_snapshot(s->lone.service, &s->lone.effects);
	}
	lone_service_step(&s->lone, &event);
	if (!ok)
		buf_clear(&s->lone.journal);
}

static void happen(struct story *s, const uint8_t *text, size_t n)
{
	unsigned argument = n > 1 ? text[1] : 0;

	switch (n ? text[0] : '\0') {
	case '0' ... '7':
		session_line(s, text[0] - '0', text + 1, n - 1);
		break;
	case 'e':
	case 'g':
		session_end(s, argument % SESSIONS, text[0] == 'g');
		break;
	case 'R':
		if (n > 2)
			session_resume(s, argument % SESSIONS, text[2] % SESSIONS);
		break;
	case 'k':
	case 'K':
		daemon_restart(s, text, n);
		break;
	case 'j':
		journal_turn(s, argument % 2);
		break;
	case 't':
		lone_service_pass(&s->lone, (int64_t)argument * argument * 1000);
		break;
	case 'd':
	case 'u':
		lone_service_store(&s->lone, text[0] == 'u');
		break;
	default:
		break;
	}
}

static void promise_nothing_left(struct story *s)
{
	const struct metrics *m;
	unsigned slot;

	for (slot = 0; slot < SESSIONS; slot++)
		session_end(s, slot, true);
	lone_service_settle(&s->lone);
	lone_service_pass(&s->lone, 120 * SEC);
	m = service_metrics(s->lone.service);
	PROMISE(m->value[METRIC_SESSIONS] == 0);
	PROMISE(m->value[METRIC_SESSIONS_DETACHED] == 0);
	PROMISE(m->value[METRIC_LOCKS_HELD] == 0);
	PROMISE(m->value[METRIC_WAITERS] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct story *s = calloc(1, sizeof(*s));
	const uint8_t *end;

	promises_init(&s->promises, promise_broken);
	lone_service_init(&s->lone);
	s->lone.sent = line_sent;
	s->lone.hung_up = session_hung_up;
	s->lone.called = store_called;
	s->lone.context = s;
	lone_service_settle(&s->lone);
	for (; size; size -= (size_t)(end - data), data = end) {
		end = memchr(data, '\n', size);
		happen(s, data, end ? (size_t)(end - data) : size);
		end = end ? end + 1 : data + size;
	}
	promise_nothing_left(s);
	lone_service_release(&s->lone);
	free(s);
	return 0;
}
