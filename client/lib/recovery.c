/* SPDX-License-Identifier: BSD-2-Clause */
/* See recovery.h. */
#include "client/lib/recovery.h"
#include "client/lib/boottime.h"
#include "client/lib/holds.h"
#include "client/lib/display.h"
#include "client/lib/pushes.h"
#include "client/lib/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define SHOWN_BYTES  200

/* --- after RESUME --- */

int recovery_send(struct redlock *c)
{
	struct pending *p = &c->pending;
	int r;

	p->sent_us = redlock_now_us();
	count_field_draft(c->greeting.resumes ? &c->holds : NULL, p, &c->draft);
	r = conn_put_draft(c);
	p->sent = true;
	return !r && p->cancelled ? conn_cancel(c) : r;
}

/* The link is up: sends the request in flight again. */
static int pending_repeat(struct redlock *c)
{
	c->pending.again |= c->pending.sent && !c->again_us;
	c->again_us = 0;
	if (!c->pending.in_flight)
		return 0;
	if (tracking_knows_loss(&c->holds, &c->pending))
		return conn_answer_lost(c);
	pending_wait_rest(&c->pending, redlock_now_us());
	return recovery_send(c);
}

/* A new connection has no watches. The request in flight comes after them, so that a LIST shows what they missed. */
static int session_watch(struct redlock *c)
{
	struct subscription *w = subscriptions_next(&c->watches);
	int r = 0;

	if (subscriptions_gap(&c->watches)) {
		draft_verb(&c->draft, MISSED);
		r = conn_make_push(c);
	}
	if (r)
		return r;
	conn_move(c, w ? LINK_WATCHING : LINK_UP);
	return w ? conn_put(c, w->line, strlen(w->line)) : pending_repeat(c);
}

/* These requests come before a TAKE. Otherwise its answer would be a job that the caller has already. */
static int session_check_jobs(struct redlock *c)
{
	if (!unchecked_jobs_ask(&c->unchecked, &c->draft))
		return session_watch(c);
	conn_move(c, LINK_KNOWING);
	return conn_put_draft(c);
}

int recovery_release(struct redlock *c)
{
	const struct hold *h = count_field_next_unsure(&c->holds, &c->pending);

	if (!h)
		return session_check_jobs(c);
	memcpy(c->asked, h->name, sizeof(c->asked));
	conn_move(c, LINK_RELEASING);
	count_field_draft_unlock(h, &c->draft);
	return conn_put_draft(c);
}

/* The validity in the answer counts from before CHECK was sent. */
static int session_check(struct redlock *c)
{
	const char *name = tracking_unseen(&c->holds);

	if (!name)
		return recovery_release(c);
	conn_move(c, LINK_CHECKING);
	draft_begin(&c->draft, "CHECK", name);
	memcpy(c->asked, name, strlen(name) + 1);
	c->resume_us = redlock_now_us();
	return conn_put_draft(c);
}

/* --- RESUME, or HELLO if the session is gone --- */

/* ERR to RESUME: the session is gone. A daemon that does not know RESUME has not kept it, either. */
static bool session_is_gone(const struct reply_line *refusal)
{
	return span_equal(refusal->code, SPAN("NOTFOUND")) || span_equal(refusal->code, SPAN("UNKNOWN")) ||
	       span_equal(refusal->code, SPAN("ARG"));
}

/* Forgets the session. Returns the reason of the losses: with grace a lock ended with its lease; without grace it was free as soon as the connection broke. */
static const char *session_forget(struct greeting *g)
{
	const char *reason = g->graceless ? "evicted" : "expired";

	g->graceless = false;
	g->session[0] = g->secret[0] = '\0';
	return reason;
}

/* The session is gone, and everything that it held is lost. */
static int session_greet(struct redlock *c)
{
	int r;

	tracking_resume(&c->holds);
	unchecked_jobs_release(&c->unchecked);
	tracking_end(&c->holds, &c->pending, session_forget(&c->greeting));
	conn_move(c, LINK_GREETING);
	r = conn_push_losses(c);
	return r ? r : conn_put(c, c->greeting.hello, strlen(c->greeting.hello));
}

/* The validity in the rows counts from before RESUME was sent. */
static int session_resume(struct redlock *c)
{
	if (!c->greeting.secret[0])
		return session_greet(c);
	conn_move(c, LINK_RESUMING);
	c->resume_us = redlock_now_us();
	tracking_resume(&c->holds);
	unchecked_jobs_resume(&c->unchecked);
	draft_verb(&c->draft, "RESUME ");
	draft_text(&c->draft, c->greeting.session);
	draft_text(&c->draft, " ");
	draft_text(&c->draft, c->greeting.secret);
	return conn_put_draft(c);
}

/* Only its own user can resume a session. */
static int session_authenticate(struct redlock *c)
{
	if (!c->auth)
		return session_resume(c);
	conn_move(c, LINK_SHOWING);
	return conn_put(c, c->auth, strlen(c->auth));
}

/* --- attempts --- */

static int attempt_failed(struct redlock *c, int error)
{
	return conn_lost(c, conn_error(c, error, "redlockd is away: %s", strerror(-error)));
}

static int attempt_refused(struct redlock *c)
{
	char shown[SHOWN_BYTES];

	shown_text((struct span){c->passing.text, c->passing.n}, shown, sizeof(shown));
	return conn_lost(c, conn_error(c, -EAGAIN, "redlockd does not resume: %s", shown));
}

/* The handshake of TLS comes before any line. */
static int attempt_shake(struct redlock *c)
{
	char why[SHOWN_BYTES];

	switch (redlock_secure->shake(c->channel.tls, why, sizeof(why))) {
	case TLS_DONE:
		return session_authenticate(c);
	case TLS_FAILED:
	case TLS_NOT_SPOKEN:
		return conn_lost(c, conn_error(c, -EPROTO, "redlockd is away: %s", why));
	case TLS_READ:
		c->shake_wants = POLLIN;
		break;
	case TLS_WRITE:
		c->shake_wants = POLLOUT;
		break;
	}
	return recovery_limit(c);
}

static int attempt_connected(struct redlock *c)
{
	if (!*c->host)
		return session_authenticate(c);
	c->channel.tls = redlock_secure->dial(c->channel.fd, c->host);
	return c->channel.tls ? attempt_shake(c) : attempt_failed(c, -ENOMEM);
}

static int attempt_begin(struct redlock *c)
{
	bool pending;
	int fd = address_again(&c->address, &pending);

	if (fd < 0)
		return attempt_failed(c, fd);
	c->channel.fd = fd;
	conn_move(c, LINK_CONNECTING);
	return pending ? 0 : attempt_connected(c);
}

static int attempt_look(struct redlock *c)
{
	int r = address_connected(c->channel.fd);

	if (c->channel.tls)
		return attempt_shake(c);
	if (r < 0)
		return attempt_failed(c, r);
	return r ? attempt_connected(c) : recovery_limit(c);
}

int recovery_limit(struct redlock *c)
{
	bool over = !c->broken && !c->again_us && c->link != LINK_UP && c->link != LINK_DOWN && redlock_now_us() >= c->due_us;

	return over ? attempt_failed(c, -ETIMEDOUT) : 0;
}

int recovery_act(struct redlock *c)
{
	switch (c->link) {
	case LINK_UP:
		return c->again_us && redlock_now_us() >= c->again_us ? pending_repeat(c) : 0;
	case LINK_DOWN:
		return redlock_now_us() >= c->due_us ? attempt_begin(c) : 0;
	case LINK_CONNECTING:
		return attempt_look(c);
	default:
		return 0;
	}
}

int64_t recovery_due_us(const struct redlock *c)
{
	if (c->again_us)
		return c->again_us;
	return c->link == LINK_UP ? INT64_MAX : c->due_us;
}

/* --- answers --- */

/* A lock that RESUME does not restore is "evicted": somebody else may hold it already. */
static int resume_answered(struct redlock *c, const struct reply_line *line)
{
	int r;

	if (line->kind == LINE_ERR && session_is_gone(line))
		return session_greet(c);
	if (line->kind != LINE_OK)
		return attempt_refused(c);
	count_field_resume(&c->holds, &c->pending);
	c->pending.unsure = reply_number(line, "open", 0) > 0;
	if (c->pending.unsure)
		return session_check(c);
	if (reply_number(line, "more", 0) > 0)
		return recovery_release(c); /* locks without a row are held all the same: there were too many for the answer */
	tracking_end(&c->holds, &c->pending, "evicted");
	r = conn_push_losses(c);
	return r ? r : recovery_release(c);
}

static int hello_answered(struct redlock *c, const struct reply_line *line)
{
	bool less = span_equal(line->code, SPAN("LIMIT")) || span_equal(line->code, SPAN("ARG"));

	if (line->kind != LINE_OK && (c->greeting.graceless || !less))
		return attempt_refused(c);
	/* The daemon now allows less grace, or none. */
	c->greeting.graceless |= line->kind != LINE_OK;
	if (line->kind != LINE_OK)
		return conn_put(c, c->greeting.hello, c->greeting.bare_n);
	greeting_named(&c->greeting, line);
	return session_watch(c);
}

/* The rules may have changed. A WATCH that the daemon refuses now ends, and the caller learns that. */
static int watch_answered(struct redlock *c, const struct reply_line *line)
{
	int r = 0;

	if (line->kind == LINE_OK) {
		subscriptions_next(&c->watches)->subscribed = true;
	} else {
		subscriptions_refused(&c->watches, line->code, &c->draft);
		r = conn_make_push(c);
	}
	return r ? r : recovery_release(c); /* a request may have been given up meanwhile */
}

static int check_answered(struct redlock *c, const struct reply_line *line)
{
	int r;

	tracking_checked(&c->holds, &c->pending, c->asked, line, c->resume_us);
	r = conn_push_losses(c);
	return r ? r : session_check(c);
}

int recovery_process(struct redlock *c)
{
	const struct reply_line *line = &c->passing.parsed;

	if (line->kind == LINE_ROW) {
		if (c->link == LINK_RESUMING)
			tracking_row(&c->holds, line, c->resume_us);
		return 0;
	}
	switch (c->link) {
	case LINK_SHOWING:
		return line->kind == LINE_OK ? session_resume(c) : attempt_refused(c);
	case LINK_RESUMING:
		return resume_answered(c, line);
	case LINK_CHECKING:
		return check_answered(c, line);
	case LINK_WATCHING:
		return watch_answered(c, line);
	case LINK_KNOWING:
		unchecked_jobs_asked(&c->unchecked, line->kind == LINE_OK);
		return session_check_jobs(c);
	case LINK_RELEASING:
		count_field_corrected(&c->holds, c->asked);
		return recovery_release(c);
	default:
		return hello_answered(c, line);
	}
}
