/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions with grace: HELLO, and the way back after a connection broke. Attempts follow each other with growing pauses, drawn by
 * chance, so that the clients of a daemon that was restarted do not come all at once. Nothing here waits but the farewell.
 */
#include "client/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/param.h>
#include <unistd.h>

#define PAUSE_FIRST_US 10000
#define PAUSE_LAST_US  500000
#define FAREWELL_MS    1000

/* --- HELLO --- */

static int hello_write(struct redlock *c, const struct redlock_session *session, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "HELLO 1"), quoted;

	if (session->label) {
		n += (size_t)snprintf(out + n, size - n, " name=");
		quoted = quote(span_of(session->label), out + n, size - n - 40);
		if (!quoted)
			return conn_says(c, -EMSGSIZE, "the label is too long");
		n += quoted;
		out[n] = '\0';
	}
	if (session->grace_ms > 0 || c->resumes)
		snprintf(out + n, size - n, " grace=%" PRId64 "ms", session->grace_ms);
	return 0;
}

static void word_take(const struct reply_line *line, const char *field, char *out, size_t size)
{
	struct span word = reply_find(line, field);

	if (word.p && word.n < size)
		snprintf(out, size, "%.*s", (int)word.n, word.p);
}

/* A session of its own has a secret of its own. */
static void session_take(struct redlock *c, const struct reply_line *line)
{
	word_take(line, "session", c->session, sizeof(c->session));
	word_take(line, "secret", c->secret, sizeof(c->secret));
}

int redlock_hello(struct redlock *c, const struct redlock_session *session)
{
	char line[sizeof(c->hello)];
	int r = hello_write(c, session, line, sizeof(line));

	if (!r)
		r = redlock_send(c, line);
	if (r)
		return r;
	c->ask.kind = ASK_HELLO;
	c->grace = session->grace_ms > 0;
	return conn_await(c, 0);
}

/* The connection may break right behind the answer: by then it is known how to come back. */
void reconnect_hello(struct redlock *c)
{
	if (c->ask.kind != ASK_HELLO || c->answer.parsed.kind != LINE_OK)
		return;
	snprintf(c->hello, sizeof(c->hello), "%.*s", (int)c->ask.n, c->ask.line);
	c->hello_bare_n = (size_t)((char *)memrchr(c->hello, ' ', strlen(c->hello)) - c->hello); /* the grace stands last */
	session_take(c, &c->answer.parsed);
	c->resumes = c->grace && c->secret[0];
	c->graceless = false;
	c->owner = getpid();
	c->chance = (uint64_t)redlock_now_us() ^ (uint64_t)c->owner << 32;
}

const char *redlock_session_id(const struct redlock *c)
{
	return c->session;
}

const char *redlock_session_secret(const struct redlock *c)
{
	return c->secret;
}

bool redlock_away(const struct redlock *c)
{
	return c->link != LINK_UP;
}

/* --- one attempt after the other --- */

static int64_t pause_us(struct redlock *c)
{
	int64_t longest = MIN((int64_t)PAUSE_FIRST_US << MIN(c->attempts, 10), PAUSE_LAST_US);

	c->attempts++;
	c->chance = c->chance * 6364136223846793005u + 1442695040888963407u;
	return longest / 2 + (int64_t)(c->chance >> 33) % (longest / 2);
}

void reconnect_begin(struct redlock *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->in_at = c->in_n = 0;
	c->out_at = c->out_n = 0;
	c->deaf = false;
	c->again_us = 0;
	/* What was not sent yet is not lost: while the link is down requests wait for it. */
	if (c->link == LINK_UP && c->in_flight && !c->ask.name[0]) {
		c->in_flight = c->answered = false;
		c->aborted = true;
	}
	c->link = LINK_DOWN;
	c->due_us = redlock_now_us() + pause_us(c);
}

static void attempt_failed(struct redlock *c, int error)
{
	conn_says(c, error, "redlockd is away: %s", strerror(-error));
	reconnect_begin(c);
}

/* What no session knows any more runs out, which its holder may believe until then; without grace it is free since the connection broke. */
static int greet(struct redlock *c)
{
	int r;

	book_open(c);
	r = book_close(c, c->graceless ? "evicted" : "expired");
	c->graceless = false;
	c->session[0] = c->secret[0] = '\0';
	c->link = LINK_GREETING;
	return r ? r : conn_say(c, c->hello, strlen(c->hello));
}

/* Rows are believed from a moment before they were asked for. */
static void attempt_speak(struct redlock *c)
{
	char line[sizeof(c->session) + sizeof(c->secret) + 16];
	int n = snprintf(line, sizeof(line), "RESUME %s %s", c->session, c->secret);

	c->link = LINK_RESUMING;
	c->resumed_us = redlock_now_us();
	book_open(c);
	if (!c->secret[0] || n < 0)
		(void)!greet(c);
	else
		(void)!conn_say(c, line, (size_t)n);
}

static void attempt_begin(struct redlock *c)
{
	bool pending;
	int fd = address_again(&c->address, &pending);

	if (fd < 0) {
		attempt_failed(c, fd);
		return;
	}
	c->fd = fd;
	c->due_us = conn_until(RECONNECT_MS);
	c->link = LINK_CONNECTING;
	if (!pending)
		attempt_speak(c);
}

static void attempt_connected(struct redlock *c)
{
	struct pollfd fd = {.fd = c->fd, .events = POLLOUT};
	int error = 0;
	socklen_t n = sizeof(error);

	if (poll(&fd, 1, 0) <= 0)
		return;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n))
		error = errno;
	if (error)
		attempt_failed(c, -error);
	else
		attempt_speak(c);
}

bool reconnect_ready(struct redlock *c)
{
	int64_t now;

	if (c->link == LINK_UP && !c->again_us)
		return true;
	now = redlock_now_us();
	if (c->link == LINK_UP && now >= c->again_us)
		(void)!ask_repeat(c);
	else if (c->link == LINK_SETTLING && c->again_us && (now >= c->again_us || !c->in_flight))
		(void)!settle(c);
	else if (c->link == LINK_DOWN && now >= c->due_us)
		attempt_begin(c);
	else if (c->link == LINK_CONNECTING)
		attempt_connected(c);
	if (c->link == LINK_CONNECTING)
		reconnect_late(c);
	return c->fd >= 0 && c->link != LINK_CONNECTING;
}

void reconnect_late(struct redlock *c)
{
	if (!c->broken && !c->again_us && c->link != LINK_UP && c->link != LINK_DOWN && redlock_now_us() >= c->due_us)
		attempt_failed(c, -ETIMEDOUT);
}

int64_t reconnect_due(const struct redlock *c)
{
	if (c->again_us)
		return c->again_us;
	return c->link == LINK_UP ? INT64_MAX : c->due_us;
}

int64_t redlock_due_us(const struct redlock *c)
{
	return reconnect_due(c);
}

/* --- what is answered --- */

int reconnect_up(struct redlock *c)
{
	c->link = LINK_UP;
	return ask_repeat(c);
}

/* Another daemon's refusal of what it does not know, and of a session that it does not know any more. */
static bool session_gone(const struct reply_line *line)
{
	return span_equal(line->code, SPAN("NOTFOUND")) || span_equal(line->code, SPAN("UNKNOWN")) ||
	       span_equal(line->code, SPAN("ARG"));
}

static int attempt_refused(struct redlock *c)
{
	char shown[SHOWN_BYTES];

	conn_says(c, -EAGAIN, "redlockd does not resume: %s", conn_shown((struct span){c->passing.text, c->passing.n}, shown));
	reconnect_begin(c);
	return 0;
}

/* A daemon that was started anew may give less grace than was asked for, or know none: a session without is better than none. */
static int greet_refused(struct redlock *c, const struct reply_line *line)
{
	if (c->graceless || !(span_equal(line->code, SPAN("LIMIT")) || span_equal(line->code, SPAN("ARG"))))
		return attempt_refused(c);
	c->graceless = true;
	return conn_say(c, c->hello, c->hello_bare_n);
}

/* A lock that the stores do not confirm may be somebody else's already. */
static int reconnect_answered(struct redlock *c, const struct reply_line *line)
{
	int r;

	if (line->kind == LINE_ERR && session_gone(line))
		return greet(c);
	if (line->kind != LINE_OK)
		return attempt_refused(c);
	c->open = reply_number(line, "open", 0);
	/* Too many to be told at once: those left out are held. */
	c->more = reply_number(line, "more", 0);
	if (c->open > 0 || c->more > 0)
		return settle(c);
	r = book_close(c, "evicted");
	return r ? r : tidy(c);
}

int reconnect_hear(struct redlock *c)
{
	const struct reply_line *line = &c->passing.parsed;

	if (line->kind == LINE_ROW) {
		if (c->link == LINK_RESUMING)
			book_row(c, line);
		return 0;
	}
	if (c->link == LINK_TIDYING)
		return tidy_hear(c, line);
	if (c->link == LINK_RESUMING)
		return reconnect_answered(c, line);
	if (c->link == LINK_SETTLING)
		return settle_hear(c, line);
	if (line->kind != LINE_OK)
		return greet_refused(c, line);
	session_take(c, line);
	return reconnect_up(c);
}

/* --- the end --- */

static bool farewell_sent(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->fd, .events = POLLOUT};
	int64_t left;

	while (!conn_drain(c) && c->out_at < c->out_n && (left = until - redlock_now_us()) > 0)
		(void)!poll(&fd, 1, (int)(left / US_PER_MS) + 1);
	return c->out_at == c->out_n && !c->deaf;
}

/* Until the daemon hangs up: data that is left unread would turn this end into a reset. */
static void farewell_await(const struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->fd, .events = POLLIN};
	char rest[4096];
	int64_t left;
	ssize_t n = 1;

	while (n && (left = until - redlock_now_us()) > 0) {
		if (poll(&fd, 1, (int)(left / US_PER_MS) + 1) <= 0)
			continue;
		n = recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
	}
}

void reconnect_quit(struct redlock *c)
{
	/* A tagged request overtakes a LOCK that waits; after RESUME it must not. */
	const char *quit = c->link == LINK_UP && c->in_flight ? "@quit QUIT\n" : "QUIT\n";
	int64_t until = conn_until(MIN(c->timeout_ms, FAREWELL_MS));
	size_t n = strlen(quit), left = c->out_n - c->out_at;

	if (!c->resumes || c->owner != getpid() || c->fd < 0 || c->link == LINK_CONNECTING || left + n > sizeof(c->out))
		return;
	memmove(c->out, c->out + c->out_at, left);
	memcpy(c->out + left, quit, n);
	c->out_at = 0, c->out_n = left + n;
	/* A daemon that is stopped reads it when it goes on. */
	if (farewell_sent(c, until) && !c->broken)
		farewell_await(c, until);
}
