/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares what the service says of itself with the account: who holds a name, who waits for it, how much a session has. */
#include "tests/fuzz/account.h"
#include "tests/fuzz/fuzz.h"

static unsigned client_of(const struct account *a, int64_t serial)
{
	unsigned k;

	for (k = 0; k < PARTIES; k++)
		if (account_is_alive(&a->client[k]) && (int64_t)a->client[k].serial == serial)
			return k;
	PROMISE(!"a session that nobody has");
	return PARTIES;
}

/* The turn of an orphan, whose client was not told: nobody else may believe that the name is theirs. */
static void silent_holder(struct account *a, unsigned name, unsigned k, const struct reply_line *row)
{
	int64_t fence = reply_number(row, "fence", -1);

	PROMISE(account_may_be_silent(a, k, name, fence) && reply_number(row, "count", -1) == 1);
	if (!account_is_silent_turn(a, k, name, fence)) {
		promise_fence_grows(&a->promises, account_words(a, name), fence);
		account_promise_not_believed(a, name, NULL);
	}
	a->text[name].silent.serial = a->client[k].serial;
	a->text[name].silent.fence = fence;
	a->text[name].silent.seen = true;
}

/* LIST and SHOW tell the right fence, session and count, and a deadline no earlier than the end of what the client may believe. */
static void promise_holder(struct account *a, unsigned name, const struct reply_line *row)
{
	struct stake *s = account_holder(a, name);
	unsigned k = client_of(a, reply_number(row, "session", -1));
	struct instant until;

	if (!s || s->client != k || s->fence != reply_number(row, "fence", -1)) {
		silent_holder(a, name, k, row);
		return;
	}
	s->seen = true;
	PROMISE(s->count == reply_number(row, "count", -1));
	until = belief_until(&a->promises, account_holder_of(s), account_words(a, name));
	PROMISE(s->expected || !instant_before(instant_add(a->now, (reply_number(row, "valid_ms", -1) + 1) * MSEC), until));
}

/*
 * Counts LOCKs that begin behind a request that was just answered. The service first serves sessions that were answered earlier at the same moment, and one of
 * them may ask in between. c: of this client, or (NULL) of all; name: of this name, or (TEXTS) of all.
 */
static unsigned beginning(const struct account *a, const struct client *c, unsigned name)
{
	const struct asked *q;
	unsigned n = 0;

	for (const struct client *d = a->client; d < a->client + CLIENTS; d++)
		if (!c || c == d)
			TAILQ_FOREACH(q, &d->asked, next)
				n += q->verb == VERB_LOCK && q->begun && !q->order && (name == TEXTS || q->name == name);
	return n;
}

static void row_of_lock(struct account *a, unsigned by, const struct reply_line *row)
{
	unsigned name = account_text(a, reply_find(row, "name"));
	unsigned waiters = (unsigned)reply_number(row, "waiters", 0), known;

	PROMISE(name < TEXTS);
	if (reply_find(row, "session").p) {
		promise_holder(a, name, row);
		a->shown.held++;
	} else {
		account_silent_loss(a, name, NULL);
	}
	known = account_waiting(a, name);
	PROMISE(waiters + (by == OBSERVER ? 0 : beginning(a, NULL, name)) >= known && waiters <= known + account_orphans(a, NULL, name));
	a->shown.waiting += known;
}

static unsigned waiting_of(const struct client *c)
{
	const struct asked *q;
	unsigned n = 0;

	TAILQ_FOREACH(q, &c->asked, next)
		n += q->verb == VERB_LOCK && q->begun;
	return n;
}

/* The service may have forgotten a loss because of a turn that the client was not told of. */
static bool stake_may_be_forgotten(struct account *a, const struct stake *s)
{
	return s->doubtful || (s->lost && account_may_be_silent(a, s->client, s->name, 0));
}

static void row_of_session(struct account *a, unsigned by, const struct reply_line *row)
{
	unsigned k = client_of(a, reply_number(row, "session", -1));
	struct client *c = &a->client[k];
	unsigned held = (unsigned)reply_number(row, "held", -1), waiting = (unsigned)reply_number(row, "waiting", -1);
	unsigned orphans = account_orphans(a, c, TEXTS), known = waiting_of(c), most = orphans, least = 0;

	PROMISE(c->away == (reply_find(row, "detached_ms").p != NULL));
	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++) {
		most += s->used && s->client == k;
		least += s->used && s->client == k && !stake_may_be_forgotten(a, s);
	}
	for (unsigned t = 0; t < a->texts; t++)
		most += a->text[t].silent.serial == c->serial;
	PROMISE(held >= least && held <= most);
	PROMISE(waiting + (by == OBSERVER ? 0 : beginning(a, c, TEXTS)) >= known && waiting <= known + orphans);
	/* The observer has just seen all turns that came, and none of the orphans waits any more. */
	while (by == OBSERVER && waiting == known && !TAILQ_EMPTY(&c->orphan))
		account_orphan_drop(a, k, TAILQ_FIRST(&c->orphan));
	a->shown.held++;
}

/* Each level of priority counts as a minute of waiting. */
static struct instant stands_at(const struct asked *q)
{
	return instant_add(q->sent, -(int64_t)q->priority * 60 * SEC);
}

/* The client's first request, as it stands in the line, that waits for the name and has no row yet. */
static struct asked *waiter_of(struct client *c, unsigned name)
{
	struct asked *q, *first = NULL;

	TAILQ_FOREACH(q, &c->asked, next)
		if (account_is_waiting(q) && q->name == name && !q->seen && (!first || instant_before(stands_at(q), stands_at(first))))
			first = q;
	if (first)
		return first;
	TAILQ_FOREACH(q, &c->orphan, next)
		if (q->name == name && !q->seen)
			return q;
	return NULL;
}

/* When two requests of one session wait for one name, a row does not say which of them it is. */
static bool order_is_known(const struct account *a, const struct client *c, unsigned name)
{
	const struct asked *q;

	if (account_orphans(a, c, name) > 0)
		return false;
	TAILQ_FOREACH(q, &c->asked, next)
		if (account_is_waiting(q) && q->name == name && !q->order)
			return false;
	return true;
}

/* A request that began at once is queued behind all that began before it. */
static void row_of_waiter(struct account *a, unsigned name, const struct reply_line *row)
{
	struct client *c = &a->client[client_of(a, reply_number(row, "session", -1))];
	struct asked *q = waiter_of(c, name);

	PROMISE(q && reply_number(row, "pos", -1) == ++a->shown.waiting);
	q->seen = true;
	if (!order_is_known(a, c, name))
		return;
	PROMISE(instant_before(a->shown.at, stands_at(q)) || (a->shown.at.us == stands_at(q).us && q->order > a->shown.order));
	a->shown.at = stands_at(q);
	a->shown.order = q->order;
}

static void row_of_name(struct account *a, unsigned name, const struct reply_line *row)
{
	if (span_equal(reply_find(row, "role"), SPAN("waiter"))) {
		row_of_waiter(a, name, row);
		return;
	}
	PROMISE(a->shown.waiting == 0);
	if (span_equal(reply_find(row, "role"), SPAN("kept"))) {
		PROMISE(!reply_find(row, "session").p && reply_find(row, "ttl_ms").p);
		return;
	}
	PROMISE(span_equal(reply_find(row, "role"), SPAN("holder")));
	if (reply_find(row, "session").p) {
		promise_holder(a, name, row);
		a->shown.held++;
	}
}

static void shown_begin(struct account *a)
{
	struct asked *q;

	a->shown.held = a->shown.waiting = 0;
	a->shown.at = INSTANT_PAST;
	a->shown.order = 0;
	for (struct client *c = a->client; c < a->client + PARTIES; c++) {
		TAILQ_FOREACH(q, &c->asked, next)
			q->seen = false;
		TAILQ_FOREACH(q, &c->orphan, next)
			q->seen = false;
	}
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++)
		s->seen = false;
	for (unsigned t = 0; t < a->texts; t++)
		a->text[t].silent.seen = false;
}

/* Whoever asks: the rows of one answer come without anything between them. */
void account_row(struct account *a, unsigned k, struct asked *q, const struct reply_line *line)
{
	if (q->rows++ == 0)
		shown_begin(a);
	if (q->verb == VERB_SHOW)
		row_of_name(a, q->name, line);
	else if (q->verb == VERB_LIST && q->what == 'l')
		row_of_lock(a, k, line);
	else if (q->verb == VERB_LIST && q->what == 's')
		row_of_session(a, k, line);
	else if (q->verb == VERB_RESUME)
		account_row_resumed(a, k, q, line);
	else
		PROMISE(q->verb == VERB_LIST || q->verb == VERB_HELP || q->verb == VERB_STATS || q->verb == VERB_COMPLETE || q->verb == VERB_RECENT);
}

/* Nobody holds a name without a row: a session without a connection has lost it, or a turn that its client was not told of is over. */
static void promise_unseen_gone(struct account *a, unsigned name)
{
	const struct stake *s = account_holder(a, name);

	if ((s && !s->seen) || (a->text[name].silent.serial > 0 && !a->text[name].silent.seen))
		account_silent_loss(a, name, NULL);
}

static void promise_all_locks(struct account *a)
{
	unsigned waiting = 0;

	for (unsigned name = 0; name < a->texts; name++) {
		promise_unseen_gone(a, name);
		waiting += account_waiting(a, name);
	}
	PROMISE(a->shown.waiting == waiting);
}

static void promise_all_sessions(struct account *a)
{
	unsigned alive = 0;

	for (unsigned k = 0; k < PARTIES; k++)
		alive += account_is_alive(&a->client[k]);
	PROMISE(a->shown.held == alive);
}

static void promise_all_of_name(struct account *a, unsigned name)
{
	unsigned known = account_waiting(a, name);

	promise_unseen_gone(a, name);
	/* The stores may have been asked, so requests of the same moment may be about to begin. */
	PROMISE(a->shown.waiting + beginning(a, NULL, name) >= known && a->shown.waiting <= known + account_orphans(a, NULL, name));
}

/* The rows are complete when the observer asks; other clients may have asked for a part. */
void account_rows_done(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	if (line->kind != LINE_OK)
		return;
	PROMISE(reply_number(line, "n", -1) == q->rows);
	if (q->rows == 0)
		shown_begin(a);
	if (q->verb == VERB_SHOW)
		promise_all_of_name(a, q->name);
	else if (k == OBSERVER && q->verb == VERB_LIST && q->what == 'l')
		promise_all_locks(a);
	else if (k == OBSERVER && q->verb == VERB_LIST && q->what == 's')
		promise_all_sessions(a);
}
