/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a story told to the service, a line each. The first byte says what happens:
 *   0-7 a line of that session (which is opened if need be)   e its end of input   g it is gone   t time passes   d u the store goes, comes
 *   R one session resumes another   k the daemon is killed and started anew on its journal, a byte of which may be changed
 *   K likewise, after the rest of the line was added to the journal as a record   j the journal cannot be written, or can again
 * Whatever the story: nothing crashes, each reply is one of the protocol, and once all sessions are gone and their grace is over, nothing of them is left.
 */
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fixture/lone_service.h"

#define SESSIONS 8

struct story {
	struct lone_service lone;
	uint64_t generation[SESSIONS];
	bool open[SESSIONS];
	char resume[SESSIONS][80]; /* the RESUME for the last session of this slot that was told a secret */
};

static void secret_keep(struct story *s, uint64_t session, const struct reply_line *line)
{
	struct span secret = reply_find(line, "secret");

	if (line->kind == LINE_OK && secret.n == 32)
		snprintf(s->resume[session & 7], sizeof(s->resume[0]), "RESUME %lld %.*s", (long long)reply_number(line, "session", 0),
			 (int)secret.n, secret.p);
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
		secret_keep(context, session, &reply);
	}
}

static void session_hung_up(void *context, uint64_t session)
{
	struct story *s = context;

	PROMISE(s->open[session & 7]);
	s->open[session & 7] = false;
}

static uint64_t session_id(const struct story *s, unsigned slot)
{
	return s->generation[slot] << 32 | slot;
}

static void session_line(struct story *s, unsigned slot, const uint8_t *text, size_t n)
{
	static char line[LINE_MAX_DEFAULT];

	if (!s->open[slot]) {
		s->generation[slot]++;
		s->open[slot] = true;
		PROMISE(lone_service_open(&s->lone, session_id(s, slot)) == 0);
	}
	n = n < sizeof(line) ? n : sizeof(line);
	memcpy(line, text, n);
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

/* A damaged journal may say anything, and may be refused. */
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
	memset(s->open, 0, sizeof(s->open));
	PROMISE(lone_service_restart(&s->lone) || !sound);
}

static void journal_turn(struct story *s, bool ok)
{
	struct event event = {.kind = EVENT_JOURNAL, .journal = {.ok = ok}};

	if (ok) {
		buf_clear(&s->lone.journal);
		while (service_snapshot(s->lone.service, &s->lone.effects))
			;
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

	lone_service_init(&s->lone);
	s->lone.sent = line_sent;
	s->lone.hung_up = session_hung_up;
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
