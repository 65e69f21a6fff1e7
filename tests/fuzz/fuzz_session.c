/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes choose what several clients of one service do: requests that a grammar makes, with and without tags, pipelined, half-closed, cut off, and
 * among them garbage; what the store does, and how time passes. Beside them stands an account of who holds what (account.h), made from
 * the replies alone. After every act LIST and SHOW must agree with it. FUZZ_TELL in the environment: the story is told on stderr.
 */
#include "tests/fuzz/account.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fixture/lone_service.h"

#include <stdarg.h>
#include <string.h>

#define ACTS_MAX 200

struct story {
	struct lone_service lone;
	struct account account;
	uint64_t generation[CLIENTS], opened;
	bool tell;
	const uint8_t *at, *end; /* what is left of the input */
	char line[LINE_MAX_DEFAULT];
	size_t n;
};

static const char *const names[] = {"a", "b", "\"c d\"", "\"=\\x00\\\"\"", "a-name-that-is-too-long-to-stand-in-the-lock-itself-x", "e", "f", "g"};
static const char *const owners[] = {"", "", " owner=1", " owner=\"2 x\""};
static const char *const waits[] = {"", " wait=0", " wait=20ms", " wait=2s", " wait=forever", " wait=1m", " WAIT=300ms", " wait=5"};
static const char *const ttls[] = {"", " ttl=100ms", " ttl=1s", " ttl=30s", " ttl=31s", " ttl=500ms renew=no", " renew=no", " ttl=1s note=\"n o\""};
static const char *const fences[] = {"", "", "", " sync=yes", " sync=yes", " keep=300ms", " keep=1m sync=yes", " sync=no"};

static unsigned next_byte(struct story *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

__attribute__((format(printf, 3, 4))) static void tell(const struct story *s, unsigned k, const char *format, ...)
{
	va_list args;

	if (!s->tell || k == OBSERVER)
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
	char line[REPLY_MAX];
	struct reply_line reply;

	s->account.now = s->lone.now;
	for (; bytes.n; bytes.n -= (size_t)(end + 1 - bytes.p), bytes.p = end + 1) {
		end = memchr(bytes.p, '\n', bytes.n);
		PROMISE(end && end - bytes.p < REPLY_MAX);
		memcpy(line, bytes.p, (size_t)(end - bytes.p));
		tell(s, (unsigned)(session & 7), "    %.*s", (int)(end - bytes.p), line);
		PROMISE(reply_parse(line, (size_t)(end - bytes.p), &reply) == 0);
		account_told(&s->account, (unsigned)(session & 7), &reply);
	}
}

static void session_hung_up(void *context, uint64_t session)
{
	struct story *s = context;

	tell(s, (unsigned)(session & 7), "    hung up");
	s->account.now = s->lone.now;
	/* Who has not said its last word may live: a heartbeat was missed. */
	account_ended(&s->account, (unsigned)(session & 7), !s->account.client[session & 7].leaving);
}

static void store_called(void *context, const struct call *call)
{
	struct story *s = context;

	promise_call(&s->account.promises, call);
}

/* Bounds that are met soon. */
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
	if (s->account.client[k].open)
		return;
	s->generation[k]++;
	account_opened(&s->account, k, ++s->opened);
	PROMISE(lone_service_open(&s->lone, session_id(s, k)) == 0);
}

static void client_says(struct story *s, unsigned k)
{
	char line[LINE_MAX_DEFAULT];

	client_open(s, k);
	if (s->account.client[k].eof)
		return;
	s->account.now = s->lone.now;
	if (!account_says(&s->account, k, s->line, s->n))
		return;
	tell(s, k, "%.*s", (int)s->n, s->line);
	memcpy(line, s->line, s->n); /* it may be said again */
	PROMISE(lone_service_line(&s->lone, session_id(s, k), line, s->n) == 0);
}

static void client_says_too_much(struct story *s, unsigned k)
{
	client_open(s, k);
	if (!s->account.client[k].eof && account_says(&s->account, k, NULL, 0))
		PROMISE(lone_service_too_long(&s->lone, session_id(s, k)) == 0);
}

static void client_half_closes(struct story *s, unsigned k, bool lines_follow)
{
	struct client *c = &s->account.client[k];

	if (!c->open)
		return;
	c->leaving = true;
	c->eof |= !lines_follow;
	tell(s, k, "%s", lines_follow ? "half-closes, lines follow" : "half-closes");
	PROMISE((lines_follow ? lone_service_half_closed : lone_service_eof)(&s->lone, session_id(s, k)) == 0);
}

static void client_goes(struct story *s, unsigned k, enum gone how)
{
	if (!s->account.client[k].open)
		return;
	tell(s, k, "is gone (%d)", (int)how);
	s->account.now = s->lone.now;
	account_ended(&s->account, k, how == GONE_KEEPALIVE || how == GONE_OVERFLOW);
	PROMISE(lone_service_gone(&s->lone, session_id(s, k), how) == 0);
}

/* --- what they say --- */

__attribute__((format(printf, 2, 3))) static void say(struct story *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(s->line + s->n, sizeof(s->line) - s->n, format, args);
	va_end(args);
	PROMISE(n >= 0 && (size_t)n < sizeof(s->line) - s->n);
	s->n += (size_t)n;
}

#define PICK(list, bits) list[(bits) % (sizeof(list) / sizeof((list)[0]))]

/* A fence that was granted, or none that ever was. */
static void say_fence(struct story *s, unsigned bits)
{
	int64_t fence = 1;

	for (const struct stake *stake = s->account.stake; stake < s->account.stake + STAKES && (bits & 1); stake++)
		if (stake->used)
			fence = stake->fence;
	say(s, " fence=%lld", (long long)fence);
}

static void say_lock(struct story *s, const char *verb, unsigned what)
{
	unsigned bits = next_byte(s), more = next_byte(s);
	const char *name = PICK(names, bits & 7), *owner = PICK(owners, bits >> 3 & 3);

	if (what & 1)
		say(s, "@%u ", bits >> 5);
	say(s, "%s %s%s", verb, name, owner);
	if (verb[0] == 'L')
		say(s, "%s%s", PICK(waits, more & 7), PICK(ttls, more >> 3 & 7));
	else if (verb[0] == 'E')
		say(s, "%s", PICK(ttls, more & 3));
	else if (verb[0] == 'U' && more & 64)
		say_fence(s, more >> 7);
	if (verb[0] == 'U')
		say(s, "%s", PICK(fences, more & 7));
}

static void say_other(struct story *s, unsigned what)
{
	static const char *const other[] = {
		"HELLO 1", "HELLO 1 name=\"x y\" heartbeat=1s", "PING", "HELP", "HELP lock", "STATS", "LIST", "LIST sessions", "LIST nodes",
		"list locks prefix=a limit=2", "LIST locks after=b", "", "# nothing", "LOCK", "LOCK a mode=shared", "LOCK a delay=1s",
		"GET / HTTP/1.1", "@! PING", "\"@a\" PING", "UNLOCK a fence=x", "HELLO 1 grace=1s", "HELLO 1 grace=20s", "HELLO 1 grace=1m heartbeat=2s",
		"HELLO 1 grace=0", "HELLO 1 grace=2m", "RESUME 1 x"};

	say(s, "%s", PICK(other, what));
}

/* Of a session that can be resumed, if there is one; or not quite its secret. */
static void say_resume(struct story *s, unsigned bits)
{
	const struct client *c = s->account.client;

	for (unsigned i = 0; i < PARTIES; i++) {
		c = &s->account.client[((bits & 15) + i) % PARTIES];
		if (account_is_alive(c) && c->grace_us > 0)
			break;
	}
	say(s, "%sRESUME %llu %s%s", bits & 32 ? "@r " : "", (unsigned long long)c->serial, c->secret[0] ? c->secret : "none", bits & 64 ? "0" : "");
}

static void say_garbage(struct story *s)
{
	size_t n = next_byte(s), left = (size_t)(s->end - s->at);

	n = n < left ? n : left;
	for (size_t i = 0; i < n; i++)
		s->line[s->n++] = s->at[i] == '\n' ? ' ' : (char)s->at[i];
	s->at += n;
}

/* One byte of what was just made is another one. */
static void say_wrong(struct story *s)
{
	unsigned at = next_byte(s), byte = next_byte(s);

	if (s->n > 0 && byte != '\n')
		s->line[at % s->n] = (char)byte;
}

/* The last word of a session, or the first of one that has come back. */
static void say_last(struct story *s)
{
	unsigned bits = next_byte(s);

	if (bits & 16)
		say(s, "QUIT");
	else
		say_resume(s, bits);
}

static void client_acts(struct story *s, unsigned k, unsigned what)
{
	static const char *const verb[] = {"LOCK", "LOCK", "LOCK", "UNLOCK", "UNLOCK", "EXTEND", "CHECK", "LOCK"};

	s->n = 0;
	if (what < 16)
		say_lock(s, verb[what >> 1], what);
	else if (what == 16)
		say(s, "CANCEL @%u", next_byte(s) & 7);
	else if (what == 17)
		say(s, "SHOW %s", PICK(names, next_byte(s)));
	else if (what == 18)
		say_other(s, next_byte(s));
	else if (what == 19)
		say_garbage(s);
	else if (what == 20) {
		say_lock(s, PICK(verb, next_byte(s)), 0);
		say_wrong(s);
	} else
		say_last(s);
	client_says(s, k);
}

/* How many sessions the new life has counted is told by HELLO. */
static void daemon_restarts(struct story *s)
{
	char hello[] = "HELLO 1";

	s->account.now = s->lone.now;
	account_restarted(&s->account, s->lone.conf.lease_us);
	PROMISE(lone_service_restart(&s->lone));
	conf_apply(s);
	s->opened = -1ull;
	client_open(s, OBSERVER);
	PROMISE(account_says(&s->account, OBSERVER, hello, strlen(hello)));
	PROMISE(lone_service_line(&s->lone, session_id(s, OBSERVER), hello, strlen(hello)) == 0);
	s->opened = s->account.client[OBSERVER].serial;
}

static void surroundings_act(struct story *s, unsigned k, unsigned what)
{
	static const char *const acts[] = {"store", "slow", "answer", "ms", "100 ms", "square ms"};
	unsigned argument = next_byte(s);

	if (what > 25)
		tell(s, 9, "%s %u", PICK(acts, what - 26), argument);
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

static void observer_asks(struct story *s, const char *verb, const char *what)
{
	s->n = 0;
	say(s, "%s %s", verb, what);
	client_says(s, OBSERVER);
	PROMISE(!account_asked(&s->account.client[OBSERVER], SPAN("")));
}

/* The stores may have to be asked: one at a time. */
static void observer_looks(struct story *s, const char *name)
{
	if (s->account.client[OBSERVER].count == 0)
		observer_asks(s, "@s SHOW", name);
}

static void promise_agreement(struct story *s, unsigned act)
{
	char line[sizeof(s->line)];
	size_t n = s->n;

	s->account.now = s->lone.now;
	account_expire(&s->account, true);
	account_promise_all_told(&s->account);
	memcpy(line, s->line, n);
	observer_asks(s, "LIST", "locks");
	observer_asks(s, "LIST", "sessions");
	observer_looks(s, PICK(names, act));
	account_promise_no_deadlock(&s->account);
	memcpy(s->line, line, n);
	s->n = n;
}

/* Once all have gone nothing of them is left, and every name can be had. */
static void promise_nothing_left(struct story *s)
{
	const struct metrics *m = service_metrics(s->lone.service);

	for (unsigned k = 0; k < CLIENTS; k++)
		client_goes(s, k, GONE_HANGUP);
	lone_service_slow(&s->lone, false);
	lone_service_settle(&s->lone);
	lone_service_pass(&s->lone, 120 * SEC);
	PROMISE(m->value[METRIC_SESSIONS] == 0 && m->value[METRIC_SESSIONS_DETACHED] == 0 && m->value[METRIC_LOCKS_HELD] == 0 && m->value[METRIC_WAITERS] == 0);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		observer_asks(s, "LOCK", names[i]);
		PROMISE(account_holder(&s->account, s->account.named));
		observer_asks(s, "UNLOCK", names[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct story *s = calloc(1, sizeof(*s));

	s->tell = getenv("FUZZ_TELL") != NULL;
	s->at = data;
	s->end = data + size;
	account_init(&s->account);
	lone_service_init(&s->lone);
	s->lone.sent = line_sent;
	s->lone.hung_up = session_hung_up;
	s->lone.called = store_called;
	s->lone.context = s;
	conf_apply(s);
	lone_service_settle(&s->lone);
	for (unsigned act = 0; act < ACTS_MAX && s->at < s->end; act++) {
		unsigned b = next_byte(s), k = (b >> 5) % OBSERVER;

		if ((b & 31) < 22)
			client_acts(s, k, b & 31);
		else
			surroundings_act(s, k, b & 31);
		promise_agreement(s, act);
	}
	promise_nothing_left(s);
	account_release(&s->account);
	lone_service_release(&s->lone);
	free(s);
	return 0;
}
