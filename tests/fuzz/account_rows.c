/* SPDX-License-Identifier: BSD-2-Clause */
/* What the service says of itself, held against the account: whose is a name, who stands in its line, how much a session has. */
#include "tests/fuzz/account.h"
#include "tests/fuzz/fuzz.h"

static unsigned client_of(const struct account *a, int64_t serial)
{
	unsigned k;

	for (k = 0; k < CLIENTS; k++)
		if (a->client[k].open && (int64_t)a->client[k].serial == serial)
			return k;
	PROMISE(!"a session that nobody has");
	return CLIENTS;
}

/* As LIST and SHOW say it: fence, session, count, and a deadline beyond what the client may believe. */
static void promise_holder(struct account *a, unsigned name, const struct reply_line *row)
{
	const struct stake *s = account_holder(a, name);

	PROMISE(s && s->client == client_of(a, reply_number(row, "session", -1)));
	PROMISE(s->fence == reply_number(row, "fence", -1) && s->count == reply_number(row, "count", -1));
	PROMISE(!instant_before(instant_add(a->now, (reply_number(row, "valid_ms", -1) + 1) * MSEC), s->until));
}

static void row_of_lock(struct account *a, const struct reply_line *row)
{
	unsigned name = account_text(a, reply_find(row, "name"));
	unsigned waiters = (unsigned)reply_number(row, "waiters", 0);

	PROMISE(name < TEXTS);
	if (reply_find(row, "session").p) {
		promise_holder(a, name, row);
		a->shown.held++;
	} else {
		PROMISE(!account_holder(a, name));
	}
	PROMISE(waiters == account_waiting(a, name));
	a->shown.waiting += waiters;
}

static void row_of_session(struct account *a, const struct reply_line *row)
{
	unsigned k = client_of(a, reply_number(row, "session", -1)), waiting = 0, stakes = 0;
	const struct asked *q;

	TAILQ_FOREACH(q, &a->client[k].asked, next)
		waiting += q->verb == VERB_LOCK && q->begun;
	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++)
		stakes += s->used && s->client == k;
	PROMISE(reply_number(row, "held", -1) == stakes);
	PROMISE(reply_number(row, "waiting", -1) == waiting);
	a->shown.held++;
}

/* The first that is not shown yet of this client's in the line. */
static struct asked *waiter_of(struct client *c, unsigned name)
{
	struct asked *q;

	TAILQ_FOREACH(q, &c->asked, next)
		if (account_is_waiting(q) && q->name == name && !q->seen)
			return q;
	return NULL;
}

/* Of two requests of one session that wait for one name a row does not say which it is. */
static bool order_is_known(const struct client *c, unsigned name)
{
	const struct asked *q;

	TAILQ_FOREACH(q, &c->asked, next)
		if (account_is_waiting(q) && q->name == name && !q->order)
			return false;
	return true;
}

/* Who began at once stands behind all who began before. */
static void row_of_waiter(struct account *a, unsigned name, const struct reply_line *row)
{
	struct client *c = &a->client[client_of(a, reply_number(row, "session", -1))];
	struct asked *q = waiter_of(c, name);

	PROMISE(q && reply_number(row, "pos", -1) == ++a->shown.waiting);
	q->seen = true;
	if (!order_is_known(c, name))
		return;
	PROMISE(q->order > a->shown.order);
	a->shown.order = q->order;
}

static void row_of_name(struct account *a, unsigned name, const struct reply_line *row)
{
	if (span_equal(reply_find(row, "role"), SPAN("waiter"))) {
		row_of_waiter(a, name, row);
		return;
	}
	PROMISE(span_equal(reply_find(row, "role"), SPAN("holder")) && a->shown.waiting == 0);
	if (reply_find(row, "session").p) {
		promise_holder(a, name, row);
		a->shown.held++;
	}
}

static void shown_begin(struct account *a)
{
	struct asked *q;

	a->shown.held = a->shown.waiting = 0;
	a->shown.order = 0;
	for (unsigned k = 0; k < CLIENTS; k++)
		TAILQ_FOREACH(q, &a->client[k].asked, next)
			q->seen = false;
}

/* Whoever asks: the rows of one answer come without anything between them. */
void account_row(struct account *a, unsigned k, struct asked *q, const struct reply_line *line)
{
	(void)k;
	if (q->rows++ == 0)
		shown_begin(a);
	if (q->verb == VERB_SHOW)
		row_of_name(a, q->name, line);
	else if (q->verb == VERB_LIST && q->what == 'l')
		row_of_lock(a, line);
	else if (q->verb == VERB_LIST && q->what == 's')
		row_of_session(a, line);
	else
		PROMISE(q->verb == VERB_LIST || q->verb == VERB_HELP || q->verb == VERB_STATS);
}

static void promise_all_locks(struct account *a)
{
	unsigned held = 0, waiting = 0;

	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++)
		held += s->used && !s->lost;
	for (unsigned name = 0; name < a->texts; name++)
		waiting += account_waiting(a, name);
	PROMISE(a->shown.held == held && a->shown.waiting == waiting);
}

static void promise_all_sessions(struct account *a)
{
	unsigned open = 0;

	for (unsigned k = 0; k < CLIENTS; k++)
		open += a->client[k].open;
	PROMISE(a->shown.held == open);
}

/* Of the observer's questions the rows are also complete; others may have asked for a part. */
void account_rows_done(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	if (line->kind != LINE_OK)
		return;
	PROMISE(reply_number(line, "n", -1) == q->rows);
	if (q->rows == 0)
		shown_begin(a);
	if (q->verb == VERB_SHOW) {
		PROMISE(a->shown.held == (account_holder(a, q->name) != NULL));
		PROMISE(a->shown.waiting == account_waiting(a, q->name));
	} else if (k == OBSERVER && q->verb == VERB_LIST && q->what == 'l') {
		promise_all_locks(a);
	} else if (k == OBSERVER && q->verb == VERB_LIST && q->what == 's') {
		promise_all_sessions(a);
	}
}
