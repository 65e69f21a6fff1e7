/* SPDX-License-Identifier: BSD-2-Clause */
/* See conn.h. */
#include "client/lib/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

const char *redlock_sized_copy(void *to, size_t n, const void *from)
{
	const char *bytes = from;
	size_t size = sizeof(size);

	if (from)
		memcpy(&size, from, sizeof(size));
	if (size < sizeof(size))
		return "the size of a struct is not set: .size = sizeof(it)";
	for (size_t i = n; i < size; i++)
		if (bytes[i])
			return "the program was compiled for a later libredlock, and asks for what this one does not know";
	memset(to, 0, n);
	if (from)
		memcpy(to, from, MIN(size, n));
	memcpy(to, &n, sizeof(n));
	return NULL;
}

/* --- HELLO and RESUME --- */

static void word_take(const struct reply_line *line, const char *field, char *out, size_t size)
{
	struct span word = reply_find(line, field);

	if (word.p && word.n < size)
		snprintf(out, size, "%.*s", (int)word.n, word.p);
}

void greeting_named(struct greeting *g, const struct reply_line *answer)
{
	word_take(answer, "session", g->session, sizeof(g->session));
	word_take(answer, "secret", g->secret, sizeof(g->secret));
}

/* --- the connection --- */

#define AUTH_MS    9000 /* the daemon delays an AUTH by up to 5 s if others at this address have failed; RESUME follows */
#define ATTEMPT_MS 3000 /* for an attempt, and for an answer: a restarted daemon takes up to 2 s to confirm the locks that it adopts */

int conn_take_struct(struct redlock *c, void *to, size_t n, const void *from)
{
	const char *flaw = redlock_sized_copy(to, n, from);

	return flaw ? conn_error(c, -EINVAL, "%s", flaw) : 0;
}

int conn_name(struct redlock *c, const char *name, size_t most, const char *what)
{
	size_t n = strlen(name);

	return n > 0 && n <= most ? 0 : conn_error(c, -EINVAL, "%s has 1 to %zu bytes", what, most);
}

int conn_usable(struct redlock *c)
{
	if (!c->user || c->user == getpid() || c->broken == -ESTALE)
		return c->broken;
	channel_close(&c->channel);
	c->pending.in_flight = c->answered = false;
	return conn_break(c, -ESTALE, "the connection belongs to the process that forked this one, which holds nothing; open another");
}

#define PAUSE_FIRST_US 10000
#define PAUSE_LAST_US  500000
#define DOUBLED_MOST   10

/* Returns the next pause. Its upper bound doubles. Half of it is random, so that not all clients of a restarted daemon connect at once. */
static int64_t pause_next_us(struct redlock *c)
{
	int64_t longest = MIN((int64_t)PAUSE_FIRST_US << MIN(c->pauses, DOUBLED_MOST), PAUSE_LAST_US);

	c->pauses++;
	c->chance = c->chance * 6364136223846793005u + 1442695040888963407u;
	return longest / 2 + (int64_t)(c->chance >> 33) % (longest / 2);
}

void conn_move(struct redlock *c, enum link to)
{
	c->link = to;
	if (to == LINK_CONNECTING || to == LINK_CHECKING || to == LINK_KNOWING || to == LINK_RELEASING || to == LINK_WATCHING)
		c->due_us = boottime_after(ATTEMPT_MS);
	if (to == LINK_SHOWING)
		c->due_us = boottime_after(AUTH_MS);
	if (to == LINK_DOWN)
		c->due_us = redlock_now_us() + pause_next_us(c);
	if (to == LINK_DOWN)
		c->again_us = 0;
}

/* A request that was not sent yet is not aborted. It waits until the link is up. */
int conn_lost(struct redlock *c, int err)
{
	if (!c->greeting.resumes)
		return c->broken = err;
	channel_close(&c->channel);
	c->spoken = false;
	subscriptions_end(&c->watches);
	if (c->link == LINK_UP && c->pending.in_flight && !pending_is_repeated(&c->pending)) {
		c->pending.in_flight = c->answered = false;
		c->aborted = "broke off before it answered; the request may have been done";
	}
	conn_move(c, LINK_DOWN);
	return conn_withdraw(c);
}

/* --- out --- */

int conn_broke(struct redlock *c, int err, const char *why)
{
	return conn_error(c, err, c->channel.closed ? "redlockd at %s closed the connection%s" : "the connection to redlockd at %s broke%s", c->place, why);
}

int conn_drain(struct redlock *c)
{
	int r = channel_flush(&c->channel);

	if (r && !c->greeting.resumes)
		return c->broken = conn_broke(c, r, "");
	if (r) {
		c->channel.mute = true;
		c->channel.out_at = c->channel.out_n;
	}
	return 0;
}

int conn_put(struct redlock *c, const char *line, size_t n)
{
	int r = channel_append(&c->channel, line, n);

	if (r)
		return conn_break(c, r, r == -ENOMEM ? "out of memory" : "redlockd does not read");
	return conn_drain(c);
}

int conn_put_draft(struct redlock *c)
{
	return c->draft.error ? conn_break(c, c->draft.error, "out of memory") : conn_put(c, c->draft.line.p, c->draft.n);
}

/* Nobody waits for the answer: its tag belongs to no request. */
int conn_cancel(struct redlock *c)
{
	static const char line[] = "@cancel CANCEL " TAG_TO_CANCEL;

	return conn_put(c, line, sizeof(line) - 2);
}

int redlock_fd(const struct redlock *c)
{
	return c->channel.fd;
}

short redlock_events(const struct redlock *c)
{
	if (c->link == LINK_CONNECTING)
		return c->channel.tls ? c->shake_wants : POLLOUT;
	return channel_unsent(&c->channel) ? POLLIN | POLLOUT : POLLIN;
}

/* --- in --- */

void conn_answered(struct redlock *c)
{
	struct redlock_line line = c->passing;

	c->passing = c->answer;
	c->answer = line;
	c->answered = true;
	c->answer_sent_us = c->pending.sent_us;
	c->pending.in_flight = false;
	c->pauses = 0;
}

/* Handles a line that the library has made itself. */
static int passing_put(struct redlock *c, const char *text)
{
	int r = line_take(&c->passing, text, strlen(text));

	return r ? conn_break(c, r, "%s", r == -ENOMEM ? "out of memory" : text) : 0;
}

static int answer_put(struct redlock *c, const char *text)
{
	int r = passing_put(c, text);

	if (!r)
		conn_answered(c);
	return r;
}

int conn_withdraw(struct redlock *c)
{
	if (!c->pending.in_flight || !c->pending.cancelled || !pending_locks(&c->pending))
		return 0;
	c->again_us = 0;
	count_field_give_up(&c->holds, &c->pending);
	return answer_put(c, "ERR CANCELLED the waiting request was withdrawn");
}

int conn_answer_lost(struct redlock *c)
{
	int r = answer_put(c, "ERR LOST the session did not hold it any more when it was resumed");

	if (!r)
		tracking_loss_acknowledged(&c->holds, &c->pending);
	return r;
}

int conn_keep_push(struct redlock *c)
{
	return pushes_add(&c->pushes, &c->passing) ? conn_break(c, -ENOMEM, "out of memory") : 0;
}

int conn_make_push(struct redlock *c)
{
	int r = c->draft.error ? conn_break(c, c->draft.error, "out of memory") : passing_put(c, c->draft.line.p);

	(void)pushes_make_room(&c->pushes);
	return r ? r : conn_keep_push(c);
}

int conn_push_losses(struct redlock *c)
{
	struct hold *h;
	int r = 0;

	LIST_FOREACH(h, &c->holds.all, next) {
		if (r || h->state != HOLD_LOST || !h->reason)
			continue;
		tracking_loss(h, &c->draft);
		r = conn_make_push(c);
	}
	return r;
}
