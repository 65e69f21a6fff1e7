/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clients of lives_test.c. The tag of a request says what it was: its verb (F is an UNLOCK with a fence that was never granted), the owner, the name, and a number that
 * makes it unique.
 */
#include "tests/unit/lives.h"

#include "tests/unit/stage_part.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[NAMES] = {"a", "b"};
static const char *const owners[OWNERS] = {"", " owner=o2"};

static unsigned client_number(const struct client *c)
{
	return (unsigned)(c - lives.client);
}

/* Whether the manuals promise that what it holds is kept. */
static bool client_is_sure(const struct client *c)
{
	return lives.calm && !c->unsure;
}

static void client_forgets(struct client *c)
{
	*c = (struct client){0};
}

void clients_are_unsure(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		lives.client[i].unsure = true;
}

void clients_choose_daemon(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		lives.client[i].stays = lives.client[i].k != 0;
}

void clients_lose_daemon(void)
{
	clients_hear();
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *c = &lives.client[i];

		if (c->daemon != 0)
			continue;
		dues_leave(c->k);
		c->k = 0;
		if (!c->resumable)
			client_forgets(c);
		for (unsigned j = 0; j < NAMES * OWNERS; j++)
			c->claim[j / OWNERS][j % OWNERS].waits = false;
	}
}

/* --- what a client is told --- */

static struct claim *claim_of(struct client *c, const struct reply_line *reply)
{
	struct span name = reply_find(reply, "name");

	for (unsigned i = 0; i < NAMES; i++)
		if (span_equal(name, span_of(names[i])))
			return &c->claim[i][reply_find(reply, "owner").n > 0];
	return NULL;
}

static void claim_begins(struct claim *m, const struct reply_line *reply)
{
	if (!m->held)
		m->renewed = !m->lapses;
	m->held = true;
	m->fence = reply_number(reply, "fence", -1);
	m->count = reply_number(reply, "count", -1);
}

static void client_loses(struct client *c, const struct reply_line *reply, const char *text)
{
	struct claim *m = claim_of(c, reply);

	if (!span_equal(reply->code, SPAN("LOST")))
		return;
	ck_assert_msg(!client_is_sure(c) || !m->held || !m->renewed || span_equal(reply_find(reply, "reason"), SPAN("expired")),
		      "client %u loses what it holds: %s", client_number(c), text);
	m->held = false;
}

static void client_finds(struct client *c, const struct reply_line *reply, const char *text)
{
	struct claim *m = claim_of(c, reply);

	if (!m)
		return;
	if (client_is_sure(c)) {
		ck_assert_msg(m->asked, "client %u has a row of what it never asked for: %s", client_number(c), text);
		ck_assert_msg(!m->held || (m->fence == reply_number(reply, "fence", -1) &&
					   m->count == reply_number(reply, "count", -1)),
			      "client %u has a row of another grant than fence=%lld count=%lld: %s", client_number(c),
			      (long long)m->fence, (long long)m->count, text);
	}
	claim_begins(m, reply);
	m->has_row = true;
	met.rows++;
}

/* What is still being adopted ("open") has no row yet. */
static void client_is_resumed(struct client *c, const struct reply_line *reply, const char *text)
{
	bool all = client_is_sure(c) && reply_number(reply, "open", 0) == 0;

	c->resuming = false;
	if (reply->kind != LINE_OK) {
		ck_assert_msg(!client_is_sure(c) || lives.copied, "client %u cannot resume: %s", client_number(c), text);
		memset(c->claim, 0, sizeof(c->claim));
		c->resumable = false;
		return;
	}
	for (unsigned j = 0; j < NAMES * OWNERS; j++) {
		struct claim *m = &c->claim[j / OWNERS][j % OWNERS];

		ck_assert_msg(!all || !m->held || !m->renewed || m->has_row, "client %u has no row of %s%s fence=%lld: %s",
			      client_number(c), names[j / OWNERS], owners[j % OWNERS], (long long)m->fence, text);
		m->waits = false;
	}
}

/* UNLOCK, EXTEND and CHECK of what it holds. */
static void client_is_not_refused(struct client *c, const struct claim *m, const struct reply_line *reply, const char *text)
{
	bool refused = span_equal(reply->code, SPAN("LOST")) || span_equal(reply->code, SPAN("QUORUM")) ||
		       span_equal(reply->code, SPAN("NOTHELD"));

	ck_assert_msg(!refused || !client_is_sure(c) || !m->held || !m->renewed,
		      "client %u does not hold what it was granted: %s", client_number(c), text);
}

static void client_is_unlocked(struct claim *m, const struct reply_line *reply)
{
	if (reply->kind == LINE_OK)
		m->count = reply_number(reply, "count", -1);
	if (span_equal(reply->code, SPAN("LOST")) || span_equal(reply->code, SPAN("QUORUM")) || m->count == 0)
		m->held = false;
}

static void client_is_answered(struct client *c, const struct reply_line *reply, const char *text)
{
	struct claim *m = &c->claim[text[3] - 'a'][text[2] - '0'];

	switch (text[1]) {
	case 'L':
		m->waits = false;
		if (reply->kind == LINE_OK)
			claim_begins(m, reply);
		break;
	case 'U':
		client_is_not_refused(c, m, reply, text);
		client_is_unlocked(m, reply);
		break;
	case 'E':
	case 'C':
		client_is_not_refused(c, m, reply, text);
		break;
	}
}

static void client_hears(struct client *c, const char *text)
{
	char line[REPLY_MAX];
	struct reply_line reply;

	story("    client %u, session %u, is told: %s", client_number(c), c->k, text);
	snprintf(line, sizeof(line), "%s", text);
	ck_assert_int_eq(reply_parse(line, strlen(line), &reply), 0);
	if (text[0] == '@')
		due_ends(c->k, text);
	if (text[0] == '@' && text[1] == 'S')
		return; /* rows of SHOW */
	if (reply.kind == LINE_PUSH)
		client_loses(c, &reply, text);
	else if (reply.kind == LINE_ROW)
		client_finds(c, &reply, text);
	else if (text[0] == '@')
		client_is_answered(c, &reply, text);
	else if (c->resuming)
		client_is_resumed(c, &reply, text);
}

static void client_is_hung_up(struct client *c)
{
	dues_leave(c->k);
	c->k = 0;
	if (!c->resumable)
		client_forgets(c);
}

void clients_hear(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *c = &lives.client[i];
		const char *text;

		while (c->k && (text = next_line(c->k)))
			client_hears(c, text);
		if (c->k && hung_up(c->k))
			client_is_hung_up(c);
	}
	dues_look();
}

/* --- what a client does --- */

static void client_says(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void client_says(struct client *c, const char *format, ...)
{
	char line[LINE_MAX_DEFAULT];
	va_list list;

	if (!c->k || hung_up(c->k) || c->half)
		return;
	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (line[0] == '@')
		due_begins(c, line);
	story("  %lld ms: client %u, session %u: %s", (long long)(stage.now.us / MSEC), client_number(c), c->k, line);
	says(c->k, "%s", line);
}

void client_locks(struct client *c, unsigned name, unsigned owner)
{
	static const char *const wait[] = {"", " wait=2s", " wait=forever"};
	struct claim *m = &c->claim[name][owner];
	char ttl[32] = "";
	bool note = one_in(4), delay = stage.conf.max_delay_us && one_in(5);

	if (!c->k || c->half || m->waits)
		return;
	m->lapses = one_in(5);
	m->asked = m->waits = true;
	m->tag = lives.tags + 1;
	if (one_in(2))
		snprintf(ttl, sizeof(ttl), " ttl=%ums", 1000 + below(9000));
	client_says(c, "@L%u%s%u LOCK %s%s%s%s%s%s%s", owner, names[name], ++lives.tags, names[name], owners[owner],
		    wait[below(3)], ttl, m->lapses ? " renew=no" : "", note ? " note=\"x y\"" : "", delay ? " delay=700ms" : "");
}

void client_unlocks(struct client *c, unsigned name, unsigned owner)
{
	static const char *const how[] = {" fence=5", " keep=300ms", " sync=yes", "", "", ""};
	unsigned which = below(6);

	client_says(c, "@%c%u%s%u UNLOCK %s%s%s", which == 0 ? 'F' : 'U', owner, names[name], ++lives.tags, names[name],
		    owners[owner], how[which]);
}

void client_extends(struct client *c, unsigned name, unsigned owner)
{
	client_says(c, "@E%u%s%u EXTEND %s%s ttl=%ums", owner, names[name], ++lives.tags, names[name], owners[owner],
		    1000 + below(9000));
}

void client_checks(struct client *c, unsigned name, unsigned owner)
{
	client_says(c, "@C%u%s%u CHECK %s%s", owner, names[name], ++lives.tags, names[name], owners[owner]);
}

/* One that can be resumed returns to its own daemon. Where the journal was copied it chooses once: neither life hears of what it gives up at the other. */
static void client_opens(struct client *c)
{
	if (c->k)
		dues_leave(c->k);
	c->k = ++lives.sessions;
	c->half = false;
	if (!c->resumable || (lives.copied && !c->stays))
		c->daemon = lives.two && one_in(3);
	c->stays = lives.copied;
	c->afar = one_in(3);
	if (c->last)
		promise_moves(c->last, c->k);
	c->last = c->k;
	if (c->afar)
		session_opens_from_afar(c->k, c->daemon);
	else
		session_opens(c->k, c->daemon);
}

static void client_resumes(struct client *c)
{
	client_opens(c);
	for (unsigned j = 0; j < NAMES * OWNERS; j++)
		c->claim[j / OWNERS][j % OWNERS].has_row = false;
	c->resuming = true;
	client_says(c, "RESUME %lld %s", (long long)c->secret.serial, c->secret.text);
}

/* A new one, or one that returns, sometimes while its connection still stands. */
void client_comes(struct client *c, unsigned name, unsigned owner)
{
	(void)name, (void)owner;
	if (!stage.daemon[0].service || lives.sessions > SESSIONS_MOST || (c->k && (!c->resumable || !one_in(3))))
		return;
	if (c->resumable) {
		client_resumes(c);
		return;
	}
	client_forgets(c);
	client_opens(c);
	if (c->daemon != 0 || stage.conf.max_grace_us < 60 * SEC || one_in(4))
		return;
	c->secret = says_hello(c->k, "grace=60s name=p");
	c->resumable = true;
}

void client_goes(struct client *c, unsigned name, unsigned owner)
{
	static const enum gone ways[] = {GONE_HANGUP, GONE_RESET, GONE_KEEPALIVE, GONE_OVERFLOW};
	(void)name, (void)owner;
	if (!c->k || one_in(2))
		return;
	story("  client %u goes", client_number(c));
	dues_leave(c->k);
	goes(c->k, ways[below(4)]);
	c->k = 0;
	if (!c->resumable)
		client_forgets(c);
}

/* All that it holds, or its grace. */
void client_gives_up(struct client *c, unsigned name, unsigned owner)
{
	(void)name, (void)owner;
	if (!c->k || !c->resumable || !one_in(4))
		return;
	if (one_in(2)) {
		client_says(c, "QUIT");
		clients_hear();
		dues_leave(c->k);
		client_forgets(c);
	} else {
		client_says(c, "HELLO 1 grace=0");
		c->resumable = false;
	}
}

void client_cancels(struct client *c, unsigned name, unsigned owner)
{
	if (c->claim[name][owner].waits)
		client_says(c, "@X%u%s%u CANCEL @L%u%s%u", owner, names[name], ++lives.tags, owner, names[name], c->claim[name][owner].tag);
}

/* Without grace its session ends once all is answered that is under way. */
void client_half_closes(struct client *c, unsigned name, unsigned owner)
{
	(void)name, (void)owner;
	if (!c->k || c->half || !one_in(4))
		return;
	story("  client %u half-closes", client_number(c));
	c->half = true;
	c->half_at = stage.now;
	c->unsure |= !c->resumable;
	half_closes(c->k);
}

/* Another grace, which is no shorter than a story promises. */
void client_says_hello(struct client *c, unsigned name, unsigned owner)
{
	(void)name, (void)owner;
	if (c->resumable && !c->resuming && stage.daemon[0].conf.max_grace_us >= 90 * SEC)
		client_says(c, "HELLO 1 grace=%us", 60 + below(30));
}

void client_looks(struct client *c, unsigned name, unsigned owner)
{
	client_says(c, "@S%u%s%u SHOW %s", owner, names[name], ++lives.tags, names[name]);
}
