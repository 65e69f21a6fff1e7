/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes choose what several clients of one service do, what the store does, and how time passes. A grammar makes the requests, with and without tags,
 * pipelined, and with garbage among them; clients half-close, break off and resume. Nothing may crash, each reply must be one of the protocol, and once all
 * clients are gone nothing of them is left. With FUZZ_TELL in the environment the story is told on stderr.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/story.h"

#include <stdarg.h>
#include <string.h>

#define ACTS_MAX 200

__attribute__((format(printf, 3, 4))) static void tell(const struct story *s, unsigned k, const char *format, ...)
{
	va_list args;

	if (!s->tell)
		return;
	fprintf(stderr, "%8.3f %u ", (double)s->lone.now.us / SEC, k);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static uint64_t session_id(const struct story *s, unsigned k)
{
	return s->generation[k] << 32 | k;
}

/* --- what the service tells --- */

static void line_sent(void *context, uint64_t session, struct span bytes)
{
	struct story *s = context;
	const char *end;
	static char line[LINE_MAX_DEFAULT];
	struct reply_line reply;

	for (; bytes.n; bytes.n -= (size_t)(end + 1 - bytes.p), bytes.p = end + 1) {
		end = memchr(bytes.p, '\n', bytes.n);
		PROMISE(end && end - bytes.p < LINE_MAX_DEFAULT);
		memcpy(line, bytes.p, (size_t)(end - bytes.p));
		tell(s, (unsigned)(session & 7), "    %.*s", (int)(end - bytes.p), line);
		PROMISE(reply_parse(line, (size_t)(end - bytes.p), &reply) == 0);
		PROMISE(end - bytes.p < REPLY_MAX || reply_find(&reply, "payload").p);
		story_told(s, &reply);
	}
}

static void session_hung_up(void *context, uint64_t session)
{
	struct story *s = context;

	tell(s, (unsigned)(session & 7), "    hung up");
	PROMISE(s->open[session & 7]);
	s->open[session & 7] = false;
}

/* Limits so low that they are soon reached. */
static void conf_apply(struct story *s)
{
	struct core_conf conf = s->lone.conf;

	conf.limits.locks = 5;
	conf.limits.waiting = 4;
	service_reload(s->lone.service, &conf);
}

/* --- what clients do --- */

static void client_open(struct story *s, unsigned k)
{
	if (s->open[k])
		return;
	s->generation[k]++;
	s->open[k] = true;
	s->eof[k] = false;
	PROMISE(lone_service_open(&s->lone, session_id(s, k)) == 0);
}

static void client_says(struct story *s, unsigned k)
{
	static char line[LINE_MAX_DEFAULT];

	client_open(s, k);
	if (s->eof[k])
		return;
	tell(s, k, "%.*s", (int)s->n, s->line);
	memcpy(line, s->line, s->n); /* it may be said again */
	PROMISE(lone_service_line(&s->lone, session_id(s, k), line, s->n) == 0);
}

static void client_says_too_much(struct story *s, unsigned k)
{
	client_open(s, k);
	if (!s->eof[k])
		PROMISE(lone_service_too_long(&s->lone, session_id(s, k)) == 0);
}

static void client_half_closes(struct story *s, unsigned k, bool lines_follow)
{
	if (!s->open[k])
		return;
	s->eof[k] |= !lines_follow;
	tell(s, k, "%s", lines_follow ? "half-closes, lines follow" : "half-closes");
	PROMISE((lines_follow ? lone_service_half_closed : lone_service_eof)(&s->lone, session_id(s, k)) == 0);
}

static void client_goes(struct story *s, unsigned k, enum gone how)
{
	if (!s->open[k])
		return;
	tell(s, k, "is gone (%d)", (int)how);
	s->open[k] = false;
	PROMISE(lone_service_gone(&s->lone, session_id(s, k), how) == 0);
}

static void client_asks(struct story *s, unsigned k, unsigned what)
{
	story_line(s, what);
	client_says(s, k);
}

static void daemon_restarts(struct story *s)
{
	memset(s->open, 0, sizeof(s->open));
	PROMISE(lone_service_restart(&s->lone));
	conf_apply(s);
}

static void surroundings_act(struct story *s, unsigned k, unsigned what)
{
	static const char *const acts[] = {"store", "slow", "answer", "ms", "100 ms", "square ms"};
	unsigned argument = story_byte(s);

	if (what > 25)
		tell(s, 9, "%s %u", acts[(what - 26) % (sizeof(acts) / sizeof(acts[0]))], argument);
	switch (what) {
	case 22:
		client_half_closes(s, k, argument & 1);
		break;
	case 23:
		client_goes(s, k, (enum gone)(argument % GONE_N));
		break;
	case 24:
		client_says_too_much(s, k);
		break;
	case 25: /* the last line again: pipelined, or a flood */
		for (argument %= 120; argument > 0; argument--)
			client_says(s, k);
		break;
	case 26:
		if (argument >= 240)
			daemon_restarts(s);
		else
			lone_service_store(&s->lone, argument & 1);
		break;
	case 27:
		s->lone.store_is_lossy = argument & 2;
		lone_service_slow(&s->lone, argument & 1);
		break;
	case 28:
		lone_service_answer(&s->lone);
		break;
	default:
		lone_service_pass(&s->lone, (int64_t)argument * (what == 29 ? 1 : what == 30 ? 100 : argument) * MSEC);
		break;
	}
}

/* --- the story --- */

static void promise_nothing_left(struct story *s)
{
	const struct metrics *m = service_metrics(s->lone.service);

	for (unsigned k = 0; k < CLIENTS; k++)
		client_goes(s, k, GONE_HANGUP);
	lone_service_slow(&s->lone, false);
	lone_service_settle(&s->lone);
	lone_service_pass(&s->lone, 120 * SEC);
	PROMISE(m->value[METRIC_SESSIONS] == 0 && m->value[METRIC_SESSIONS_DETACHED] == 0 && m->value[METRIC_LOCKS_HELD] == 0 && m->value[METRIC_WAITERS] == 0);
	PROMISE(m->value[METRIC_PERMITS_HELD] == 0 && m->value[METRIC_PERMITS_WAITING] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct story *s = calloc(1, sizeof(*s));

	s->tell = getenv("FUZZ_TELL") != NULL;
	s->at = data;
	s->end = data + size;
	lone_service_init(&s->lone);
	s->lone.sent = line_sent;
	s->lone.hung_up = session_hung_up;
	s->lone.context = s;
	conf_apply(s);
	lone_service_settle(&s->lone);
	for (unsigned act = 0; act < ACTS_MAX && s->at < s->end; act++) {
		unsigned b = story_byte(s), k = (b >> 5) % CLIENTS;

		if ((b & 31) < 22)
			client_asks(s, k, b & 31);
		else
			surroundings_act(s, k, b & 31);
	}
	promise_nothing_left(s);
	lone_service_release(&s->lone);
	free(s);
	return 0;
}
