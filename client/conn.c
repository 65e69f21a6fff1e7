/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection: bytes out, bytes in, lines sorted into the answer, its rows, and pushes. Only redlock_finish waits. What went
 * wrong once stays wrong: the descriptor is kept open until redlock_close, since closing it frees what the session holds. Only with
 * grace a connection that the other side ended is one more moment of the session (reconnect.c).
 */
#include "client/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t redlock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int conn_says(struct redlock *c, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->message, sizeof(c->message), format, args);
	va_end(args);
	return err;
}

int conn_break(struct redlock *c, int err, const char *why)
{
	c->broken = err;
	return conn_says(c, err, "%s", why);
}

/* The other side ended it, or the way there did. */
static int conn_drop(struct redlock *c, int err, const char *why)
{
	if (!c->resumes)
		return conn_break(c, err, why);
	conn_says(c, err, "%s", why);
	reconnect_begin(c);
	return 0;
}

int redlock_open(const char *addr, int64_t timeout_ms, struct redlock **ret_connection)
{
	char standard[512];
	struct redlock *c;
	int r;

	if (timeout_ms <= 0 || timeout_ms > INT64_MAX / US_PER_MS)
		return -EINVAL;
	if (!addr) {
		r = redlock_address(standard, sizeof(standard));
		if (r)
			return r;
		addr = standard;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->fd = address_connect(addr, timeout_ms, &c->address);
	if (c->fd < 0) {
		r = c->fd;
		free(c);
		return r;
	}
	c->timeout_ms = timeout_ms;
	c->answer.text = c->answer_text, c->answer.scratch = c->answer_scratch;
	c->passing.text = c->passing_text, c->passing.scratch = c->passing_scratch;
	STAILQ_INIT(&c->pushes);
	LIST_INIT(&c->book.holds);
	*ret_connection = c;
	return 0;
}

void redlock_set_timeout(struct redlock *c, int64_t timeout_ms)
{
	c->timeout_ms = timeout_ms;
}

void redlock_close(struct redlock *c)
{
	struct push *push;

	if (!c)
		return;
	reconnect_quit(c);
	book_release(&c->book);
	while ((push = STAILQ_FIRST(&c->pushes))) {
		STAILQ_REMOVE_HEAD(&c->pushes, next);
		free(push);
	}
	free(c->shown);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* --- out --- */

int conn_drain(struct redlock *c)
{
	ssize_t n;

	while (c->out_at < c->out_n) {
		n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		/* What had come before is still read: the end shows there. */
		c->deaf = n < 0 && c->resumes;
		if (c->deaf)
			c->out_at = c->out_n;
		else if (n < 0)
			return conn_break(c, -errno, "the connection to redlockd broke");
		else
			c->out_at += (size_t)n;
	}
	return 0;
}

/* A blank line and a comment are never answered, and waiting for that would not end. */
static bool line_answered(const char *line)
{
	line += strspn(line, " \t\r");
	return *line && *line != '#' && !strchr(line, '\n');
}

int conn_say(struct redlock *c, const char *line, size_t n)
{
	memcpy(c->out, line, n);
	c->out[n] = '\n';
	c->out_at = 0, c->out_n = n + 1;
	return conn_drain(c);
}

int conn_ask(struct redlock *c)
{
	int r = 0;

	c->row = NULL;
	c->aborted = false;
	c->in_flight = true;
	c->sent_us = c->ask.asked_us = redlock_now_us();
	c->ask.row.told = c->ask.settled = false;
	if (ask_settle_known(c, &r))
		return r;
	c->ask.sent = c->link == LINK_UP;
	if (c->ask.sent && tidy_doubts(c))
		return settle(c);
	return c->ask.sent ? conn_say(c, c->ask.line, c->ask.n) : 0;
}

int redlock_send(struct redlock *c, const char *line)
{
	size_t n = strlen(line);

	if (c->broken)
		return c->broken;
	if (c->in_flight)
		return conn_says(c, -EBUSY, "another request is in flight");
	if (!line_answered(line))
		return conn_says(c, -EINVAL, "not a request: empty, a comment, or more than one line");
	if (n + 1 > sizeof(c->out))
		return conn_says(c, -EMSGSIZE, "a request has at most %zu bytes", sizeof(c->out) - 1);
	c->ask.kind = ASK_ONCE;
	c->ask.anchors = false;
	c->ask.name[0] = '\0';
	memcpy(c->ask.line, line, n);
	c->ask.n = n;
	return conn_ask(c);
}

/* --- in --- */

static int line_fill(struct redlock_line *line, const char *from, size_t n)
{
	line->n = n;
	memcpy(line->text, from, n);
	memcpy(line->scratch, from, n);
	return reply_parse(line->scratch, n, &line->parsed);
}

int conn_push(struct redlock *c, const char *from, size_t n)
{
	struct push *push;

	push = malloc(sizeof(*push) + 2 * n);
	if (!push)
		return conn_break(c, -ENOMEM, "out of memory");
	push->line.text = push->bytes;
	push->line.scratch = push->bytes + n;
	if (line_fill(&push->line, from, n)) {
		free(push);
		return conn_break(c, -EPROTO, "redlockd sent a push that cannot be read");
	}
	if (book_told(c, &push->line.parsed)) {
		free(push);
		return 0;
	}
	STAILQ_INSERT_TAIL(&c->pushes, push, next);
	c->pushes_n++;
	book_hear_push(c, &push->line.parsed);
	return 0;
}

/* A risk is worth the less the longer nobody asks for it. False: there are losses only. */
static bool push_drop_oldest(struct redlock *c)
{
	struct push *push;

	STAILQ_FOREACH(push, &c->pushes, next)
	if (!span_equal(push->line.parsed.code, SPAN("LOST")))
		break;
	if (!push)
		return false;
	STAILQ_REMOVE(&c->pushes, push, push, next);
	c->pushes_n--;
	free(push);
	return true;
}

static void answer_take(struct redlock *c)
{
	struct redlock_line line = c->passing;

	c->passing = c->answer;
	c->answer = line;
	c->answered = true;
	c->answer_sent_us = c->sent_us;
	c->in_flight = false;
	c->attempts = 0;
}

int conn_answer(struct redlock *c, const char *line, size_t n)
{
	if (line_fill(&c->passing, line, n))
		return conn_break(c, -EPROTO, "what RESUME told cannot be put into an answer");
	answer_take(c);
	return 0;
}

static int answer_hear(struct redlock *c)
{
	if (c->passing.parsed.kind == LINE_ROW) {
		if (c->row)
			c->row(c->row_arg, &c->passing);
	} else if (!ask_puts_off(c)) {
		answer_take(c);
		reconnect_hello(c);
		book_hear_answer(c);
		return tidy_now(c);
	}
	return 0;
}

static int line_take(struct redlock *c, const char *from, size_t n)
{
	if (n && from[0] == '!' && c->pushes_n >= PUSHES_MAX && !push_drop_oldest(c))
		return conn_break(c, -ENOBUFS, "redlockd sent more pushes than can be kept");
	if (n && from[0] == '!')
		return conn_push(c, from, n);
	if (n >= REPLY_MAX || line_fill(&c->passing, from, n))
		return conn_break(c, -EPROTO, "what answers does not speak the protocol of redlockd");
	if (c->link != LINK_UP)
		return reconnect_hear(c);
	if (!c->in_flight)
		return conn_break(c, -EPROTO, "redlockd answered what was not asked");
	return answer_hear(c);
}

static int lines_take(struct redlock *c)
{
	char *from, *end;
	size_t n;
	int r;

	while ((end = memchr(c->in + c->in_at, '\n', c->in_n - c->in_at))) {
		from = c->in + c->in_at;
		n = (size_t)(end - from);
		c->in_at += n + 1;
		if (n && from[n - 1] == '\r')
			n--;
		r = line_take(c, from, n);
		if (r)
			return r;
	}
	memmove(c->in, c->in + c->in_at, c->in_n - c->in_at);
	c->in_n -= c->in_at;
	c->in_at = 0;
	return c->in_n == sizeof(c->in) ? conn_break(c, -EPROTO, "redlockd sent a line without end") : 0;
}

/* Reads once. 1: there may be more. */
static int conn_read(struct redlock *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_n, sizeof(c->in) - c->in_n, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || (errno == EAGAIN && !c->deaf)))
		return errno == EINTR;
	if (n < 0)
		return conn_drop(c, c->deaf ? -EPIPE : -errno, "the connection to redlockd broke");
	if (n == 0)
		return conn_drop(c, -ECONNRESET, "redlockd closed the connection");
	c->in_n += (size_t)n;
	return 1;
}

int redlock_process(struct redlock *c)
{
	int r, more;

	if (c->broken || !reconnect_ready(c))
		return c->broken;
	r = conn_drain(c);
	if (r)
		return r;
	do {
		more = conn_read(c);
		r = more < 0 ? more : lines_take(c);
	} while (more > 0 && !r && c->fd >= 0);
	reconnect_late(c);
	return r;
}

/* --- what callers see --- */

int redlock_request(struct redlock *c, const char *line, int64_t wait_ms, void (*row)(void *arg, const struct redlock_line *line),
		    void *arg)
{
	int r = redlock_send(c, line);

	if (r)
		return r;
	c->row = row;
	c->row_arg = arg;
	return conn_await(c, wait_ms);
}

const struct redlock_line *redlock_next_push(struct redlock *c)
{
	free(c->shown);
	c->shown = STAILQ_FIRST(&c->pushes);
	if (!c->shown)
		return NULL;
	STAILQ_REMOVE_HEAD(&c->pushes, next);
	c->pushes_n--;
	return &c->shown->line;
}

int redlock_fd(const struct redlock *c)
{
	return c->fd;
}

short redlock_events(const struct redlock *c)
{
	if (c->link == LINK_CONNECTING)
		return POLLOUT;
	return c->out_at < c->out_n ? POLLIN | POLLOUT : POLLIN;
}

bool redlock_in_flight(const struct redlock *c)
{
	return c->in_flight;
}
