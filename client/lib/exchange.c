/* SPDX-License-Identifier: BSD-2-Clause */
/* See exchange.h. */
#include "client/lib/exchange.h"
#include "client/lib/recovery.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/param.h>
#include <unistd.h>

#define PUT_OFF_US 200000 /* the pause before a request is sent again after an answer that did not end it */

int exchange_draft(struct redlock *c, enum pending_kind kind, const char *name)
{
	struct draft *d = &c->draft;
	int r = conn_usable(c);

	if (r)
		return r;
	if (!d->error && (kind >= PENDING_LOCK || d->wait_ms) && d->n > LINE_MAX_DEFAULT - COUNTED_BYTES)
		d->error = -EMSGSIZE;
	if (d->error)
		return conn_error(c, d->error, d->error == -ENOMEM ? "out of memory" : "the request is too long");
	if (c->pending.in_flight)
		return conn_error(c, -EBUSY, "another request is in flight");
	return pending_set(&c->pending, kind, name, d) ? conn_error(c, -ENOMEM, "out of memory") : 0;
}

int exchange_begin(struct redlock *c)
{
	c->row = NULL;
	c->aborted = NULL;
	if (!c->user)
		c->user = getpid();
	pending_begin(&c->pending, redlock_now_us());
	c->pending.timeout_ms = c->timeout_ms;
	if (c->greeting.resumes && tracking_knows_loss(&c->holds, &c->pending))
		return conn_answer_lost(c);
	return c->link == LINK_UP ? recovery_send(c) : 0;
}

int exchange_send(struct redlock *c, enum pending_kind kind, const char *name, int64_t busy_ms)
{
	int r = exchange_draft(c, kind, name);

	c->pending.busy_ms = r ? c->pending.busy_ms : busy_ms;
	return r ? r : exchange_begin(c);
}

/* While the daemon is away, a LOCK ends at once and is undone when the daemon is back. A TAKE is then sent again and withdrawn. */
int redlock_cancel(struct redlock *c)
{
	int r = conn_usable(c);

	if (r)
		return r;
	if (!c->pending.in_flight || c->pending.line.p[0] != '@' || !(pending_locks(&c->pending) || c->pending.kind == PENDING_TAKE))
		return conn_error(c, -EINVAL, "no request is in flight that can be cancelled");
	if (c->pending.cancelled)
		return 0;
	c->pending.cancelled = true;
	c->pending.busy_ms = (redlock_now_us() - c->pending.asked_us) / US_PER_MS; /* the answer is due timeout_ms from now */
	if (c->link == LINK_UP && !c->again_us)
		return conn_cancel(c);
	r = conn_withdraw(c);
	return !r && c->link == LINK_UP && c->holds.count_unsure ? recovery_release(c) : r;
}

/* Returns the moment until which the daemon may be silent. */
static int64_t answer_due_us(const struct redlock *c)
{
	const struct pending *p = &c->pending;

	if (!p->in_flight || p->busy_ms < 0 || p->busy_ms > (INT64_MAX - p->asked_us) / US_PER_MS - p->timeout_ms)
		return INT64_MAX;
	return p->asked_us + (p->busy_ms + p->timeout_ms) * US_PER_MS;
}

/* Ends the request in flight if its time is over. With grace the session continues, over another connection if the daemon was silent. */
static int exchange_limit(struct redlock *c)
{
	bool up = c->link == LINK_UP, silent = up && !c->again_us;

	if (redlock_now_us() < answer_due_us(c))
		return 0;
	if (silent)
		conn_error(c, -ETIMEDOUT, "redlockd at %s does not answer", c->place);
	if (silent && !c->greeting.resumes)
		return conn_lost(c, -ETIMEDOUT);
	count_field_give_up(&c->holds, &c->pending);
	c->pending.in_flight = c->answered = false;
	c->aborted = silent ? "does not answer; the request may have been done" : up ? "could not tell in time" : "is away, and did not come back in time";
	if (up)
		c->again_us = 0;
	return silent ? conn_lost(c, -ETIMEDOUT) : 0;
}

int exchange_refuse(struct redlock *c, const char *name)
{
	return count_field_refuse(&c->holds, name) && c->link == LINK_UP ? recovery_release(c) : 0;
}

/* --- lines that arrive --- */

/* Called right after the answer to HELLO is read, because the connection may break after it. */
static void hello_agreed(struct redlock *c)
{
	struct greeting *g = &c->greeting;

	snprintf(g->hello, sizeof(g->hello), "%s", c->pending.line.p);
	g->bare_n = (size_t)((char *)memrchr(g->hello, ' ', strlen(g->hello)) - g->hello); /* the grace is the last field */
	greeting_named(g, &c->answer.parsed);
	g->resumes = g->grace && g->secret[0];
	g->graceless = false;
	g->owner = getpid();
	c->chance = (uint64_t)redlock_now_us() ^ (uint64_t)g->owner << 32;
}

static int pending_answered(struct redlock *c)
{
	conn_answered(c);
	if (c->pending.kind == PENDING_HELLO && c->answer.parsed.kind == LINE_OK)
		hello_agreed(c);
	if (c->greeting.resumes)
		tracking_answer(&c->holds, &c->pending, &c->answer.parsed);
	if (c->greeting.resumes && unchecked_jobs_answer(&c->unchecked, &c->answer.parsed))
		return conn_break(c, -ENOMEM, "out of memory");
	return c->holds.count_unsure ? recovery_release(c) : 0;
}

/* Handles c->passing: the answer to the request in flight, or a row of it. */
static int pending_process(struct redlock *c)
{
	const struct reply_line *line = &c->passing.parsed;

	if (line->kind == LINE_ROW) {
		if (c->greeting.resumes)
			tracking_grant_row(&c->holds, &c->pending, line);
		c->pending.row_passed = true;
		if (c->row)
			c->row(c->row_arg, &c->passing);
		return 0;
	}
	if (c->greeting.resumes && count_field_is_outdated(&c->holds, &c->pending, line)) {
		c->again_us = redlock_now_us();
		return 0;
	}
	if (!c->greeting.resumes || !pending_goes_on(&c->pending, line, redlock_now_us()))
		return pending_answered(c);
	c->again_us = redlock_now_us() + PUT_OFF_US;
	return 0;
}

/* Returns the tag of the request in flight, if the link is up. The requests of recovery have no tag. */
static struct span tag_sent(const struct redlock *c)
{
	const char *at = c->link == LINK_UP && c->pending.in_flight ? c->pending.line.p : "";

	at += strspn(at, " \t");
	return *at == '@' ? (struct span){at + 1, strcspn(at, " \t") - 1} : SPAN("");
}

static int push_process(struct redlock *c)
{
	if (!pushes_make_room(&c->pushes))
		return conn_break(c, -ENOBUFS, "redlockd sent more pushes than can be kept");
	unchecked_jobs_push(&c->unchecked, &c->passing.parsed);
	return !c->greeting.resumes || tracking_push(&c->holds, &c->passing.parsed) ? conn_keep_push(c) : 0;
}

static int line_process(struct redlock *c, struct span line)
{
	bool push = line.n && line.p[0] == '!';
	int r = line.n >= (push ? REPLY_MAX : LINE_MAX_DEFAULT) ? -EPROTO : line_take(&c->passing, line.p, line.n);

	if (r == -ENOMSG && c->spoken)
		return 0;
	if (r)
		return conn_break(c, r == -ENOMSG ? -EPROTO : r, r == -ENOMEM ? "out of memory" : "the peer does not speak the protocol of redlockd");
	if (push)
		return push_process(c);
	c->spoken = true;
	if (c->passing.parsed.tag.n && !span_equal(c->passing.parsed.tag, tag_sent(c)))
		return 0;
	if (c->link != LINK_UP)
		return recovery_process(c);
	if (!c->pending.in_flight)
		return conn_break(c, -EPROTO, "redlockd sent an answer without a request");
	return pending_process(c);
}

static int lines_process(struct redlock *c)
{
	struct span line;
	int r = 0;

	while (!r && channel_line(&c->channel, &line))
		r = line_process(c, line);
	return !r && c->channel.in_n >= LINE_MAX_DEFAULT ? conn_break(c, -EPROTO, "redlockd sent a line without end") : r;
}

/* The daemon closed the connection, or it broke. */
static int channel_ended(struct redlock *c, int err)
{
	char reason[BROKE_BYTES] = "";

	if (c->channel.tls && err == -EPROTO)
		snprintf(reason, sizeof(reason), ": %s", redlock_secure->reason());
	return conn_lost(c, conn_broke(c, err, reason));
}

static int lines_read(struct redlock *c)
{
	int r, more;

	do {
		more = channel_read(&c->channel);
		r = more < 0 ? channel_ended(c, more) : lines_process(c);
	} while (more > 0 && !r && c->channel.fd >= 0);
	return r;
}

int redlock_process(struct redlock *c)
{
	int r = conn_usable(c);

	if (!r)
		r = recovery_act(c);
	if (!r && c->channel.fd >= 0 && c->link != LINK_CONNECTING) {
		r = conn_drain(c);
		if (!r)
			r = lines_read(c);
		r = r ? r : recovery_limit(c);
	}
	return r ? r : exchange_limit(c);
}

int64_t redlock_due_us(const struct redlock *c)
{
	return MIN(recovery_due_us(c), answer_due_us(c));
}

/* --- waiting --- */

/* Waits until something arrives or is due. */
static int await_something(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd, .events = redlock_events(c)};

	if (poll(&fd, 1, boottime_poll_ms(MIN(until, redlock_due_us(c)))) < 0 && errno != EINTR)
		return conn_break(c, -errno, "waiting failed");
	return 0;
}

/* Returns 0 when the request is not in flight any more. */
static int await_end(struct redlock *c, int64_t until)
{
	int r = 0;

	while (!r && c->pending.in_flight) {
		r = redlock_process(c);
		if (r || !c->pending.in_flight)
			break;
		if (boottime_poll_ms(until) == 0)
			return conn_error(c, -EAGAIN, "no answer yet");
		r = await_something(c, until);
	}
	return r;
}

int redlock_finish(struct redlock *c, int64_t timeout_ms)
{
	int r = conn_usable(c);

	if (r == -ESTALE)
		return r;
	if (!c->pending.in_flight && !c->answered && !c->aborted)
		return conn_error(c, -EINVAL, "nothing was asked");
	r = await_end(c, boottime_after(timeout_ms));
	if (c->aborted) {
		conn_error(c, -ECONNABORTED, "redlockd at %s %s", c->place, c->aborted);
		c->aborted = NULL;
		return -ECONNABORTED;
	}
	/* A complete answer counts, even if the connection ended after it. */
	return c->pending.in_flight ? r : outcome_of(&c->answer.parsed, c->code, c->message);
}

int redlock_wait_push(struct redlock *c, int64_t timeout_ms, const struct redlock_line **ret_push)
{
	int64_t until = boottime_after(timeout_ms);
	const struct redlock_line *push;
	int r;

	for (;;) {
		r = redlock_process(c);
		push = pushes_next(&c->pushes);
		if (push)
			break;
		if (!r && boottime_poll_ms(until) == 0)
			return conn_error(c, -EAGAIN, "no push yet");
		if (!r)
			r = await_something(c, until);
		if (r)
			return r;
	}
	*ret_push = push;
	return 0;
}

int await_answer(struct redlock *c, int r)
{
	return r ? r : redlock_finish(c, REDLOCK_FOREVER);
}

int await_draft(struct redlock *c, enum pending_kind kind, int64_t busy_ms, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	int r = exchange_send(c, kind, "", busy_ms);

	if (r)
		return r;
	c->row = row;
	c->row_arg = arg;
	return await_answer(c, 0);
}
