/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions that outlive their connections. Without a connection a session may lose locks, have turns, or lose its places in queues, and its client is not told.
 * So the account knows only what is possible, until LIST, SHOW or RESUME tell what is true.
 */
#include "tests/fuzz/account.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

bool account_is_alive(const struct client *c)
{
	return (c->open && !c->taken) || c->away;
}

static unsigned party_free(const struct account *a)
{
	unsigned k = CLIENTS;

	while (a->client[k].away)
		PROMISE(++k < PARTIES);
	return k;
}

/* Moves the session and all that it has to another party, which has nothing. Its requests end with its connection, but LOCKs that began become orphans. */
static void party_move(struct account *a, unsigned from, unsigned to)
{
	struct client *c = &a->client[from], *d = &a->client[to];
	struct asked *q;

	while ((q = TAILQ_FIRST(&c->asked))) {
		TAILQ_REMOVE(&c->asked, q, next);
		if (q->verb == VERB_LOCK && q->begun)
			TAILQ_INSERT_TAIL(&c->orphan, q, next);
		else
			free(q);
	}
	c->count = 0;
	TAILQ_CONCAT(&d->orphan, &c->orphan, next);
	d->serial = c->serial;
	memcpy(d->secret, c->secret, sizeof(d->secret));
	d->grace_us = d->grace_us > 0 ? d->grace_us : c->grace_us;
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && s->client == from)
			s->client = to;
	for (unsigned owner = 0; owner < a->texts; owner++)
		beliefs_pass(&a->promises, from * TEXTS + owner, to * TEXTS + owner);
}

void account_detach(struct account *a, unsigned k, bool unsure)
{
	unsigned to = party_free(a);
	struct client *d = &a->client[to];

	*d = (struct client){.away = true, .sure = !unsure};
	TAILQ_INIT(&d->asked);
	TAILQ_INIT(&d->orphan);
	party_move(a, k, to);
	d->over = instant_add(a->now, d->grace_us);
}

void account_restarted(struct account *a, int64_t grace_least_us)
{
	for (unsigned k = 0; k < CLIENTS; k++)
		if (a->client[k].open)
			account_ended(a, k, true);
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++) {
		s->expected = !s->lost;
		s->again = s->lost;
	}
	for (unsigned k = CLIENTS; k < PARTIES; k++) {
		struct client *c = &a->client[k];

		if (!c->away)
			continue;
		c->sure = false;
		c->over = instant_add(a->now, c->grace_us > grace_least_us ? c->grace_us : grace_least_us);
		while (!TAILQ_EMPTY(&c->orphan)) /* the next run knows no places in queues, only turns that came */
			account_orphan_drop(a, k, TAILQ_FIRST(&c->orphan));
	}
}

void account_expire(struct account *a, bool by_now)
{
	for (unsigned k = CLIENTS; k < PARTIES; k++) {
		const struct client *c = &a->client[k];

		if (c->away && (instant_before(c->over, a->now) || (by_now && !instant_before(a->now, c->over))))
			account_over(a, k, !c->sure);
	}
}

/* --- what may be --- */

unsigned account_orphans(const struct account *a, const struct client *c, unsigned name)
{
	const struct asked *q;
	unsigned n = 0;

	for (const struct client *d = a->client; d < a->client + PARTIES; d++)
		if (!c || c == d)
			TAILQ_FOREACH(q, &d->orphan, next)
				n += name == TEXTS || q->name == name;
	return n;
}

/* If the orphan had its turn, the service has forgotten the loss before it. */
static void stake_doubt(struct account *a, unsigned k, unsigned name, unsigned owner)
{
	struct stake *s = account_stake(a, k, name, owner);

	if (s && s->lost)
		s->doubtful = true;
}

void account_orphan_drop(struct account *a, unsigned k, struct asked *q)
{
	stake_doubt(a, k, q->name, q->owner);
	TAILQ_REMOVE(&a->client[k].orphan, q, next);
	free(q);
}

bool account_may_be_silent(const struct account *a, unsigned k, unsigned name, int64_t fence)
{
	const struct client *c = &a->client[k];

	if (a->text[name].silent.serial == c->serial && (fence == 0 || fence == a->text[name].silent.fence))
		return true;
	return account_orphans(a, c, name) > 0 && (fence == 0 || fence > account_last_fence(a, name));
}

void account_surfaces(struct account *a, unsigned k, unsigned name, unsigned owner)
{
	struct client *c = &a->client[k];
	struct asked *q;

	if (a->text[name].silent.serial == c->serial)
		a->text[name].silent.serial = 0;
	TAILQ_FOREACH(q, &c->orphan, next)
		if (q->name == name && q->owner == owner) {
			account_orphan_drop(a, k, q);
			return;
		}
}

void account_silent_loss(struct account *a, unsigned name, const struct stake *but)
{
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++) {
		if (!s->used || s->lost || s->name != name || s == but)
			continue;
		PROMISE(s->due || a->client[s->client].away);
		account_stake_lost(a, s);
		s->owed = true;
	}
	a->text[name].silent.serial = 0;
}

void account_promise_not_believed(struct account *a, unsigned name, const struct stake *but)
{
	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++) {
		const struct client *c = &a->client[s->client];

		if (s->used && s->name == name && c->away && c->sure && !instant_before(a->now, c->over))
			belief_ends(&a->promises, account_holder_of(s), account_words(a, name));
	}
	promise_nobody_believes(&a->promises, a->now, account_words(a, name), false);
	account_silent_loss(a, name, but);
}

bool account_is_silent_turn(const struct account *a, unsigned k, unsigned name, int64_t fence)
{
	return a->text[name].silent.serial == a->client[k].serial && fence == a->text[name].silent.fence;
}

void account_killed(struct account *a, uint64_t serial)
{
	for (unsigned k = 0; k < PARTIES; k++) {
		if (!account_is_alive(&a->client[k]) || a->client[k].serial != serial)
			continue;
		if (k < CLIENTS)
			a->client[k].killed = true; /* it is hung up on */
		else
			account_over(a, k, true);
		return;
	}
	PROMISE(!"a session that nobody has is killed");
}

/* --- RESUME --- */

static bool asks_the_stores(const struct asked *q)
{
	return q->begun && (q->verb == VERB_LOCK || q->verb == VERB_UNLOCK || q->verb == VERB_EXTEND || q->verb == VERB_RESUME || q->verb == VERB_BREAK);
}

static bool has_nothing(const struct account *a, unsigned k, const struct asked *but)
{
	const struct asked *q;

	TAILQ_FOREACH(q, &a->client[k].asked, next)
		if (q != but && asks_the_stores(q))
			return false;
	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && s->client == k)
			return false;
	return true;
}

static unsigned party_of(const struct account *a, uint64_t serial)
{
	for (unsigned k = 0; k < PARTIES && serial > 0; k++)
		if (account_is_alive(&a->client[k]) && a->client[k].serial == serial)
			return k;
	return PARTIES;
}

static void take_over(struct account *a, unsigned k, unsigned from)
{
	if (from < CLIENTS) {
		account_detach(a, from, false);
		a->client[from].taken = true;
		from = party_of(a, a->client[from].serial);
	}
	party_move(a, from, k);
	a->client[from].away = false;
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && s->client == k)
			s->due = !s->lost;
}

void account_begin_resume(struct account *a, unsigned k, struct asked *q)
{
	unsigned from = party_of(a, q->serial);

	if (!has_nothing(a, k, q)) {
		q->mistake = ERROR_ARG;
		return;
	}
	if (from == PARTIES) {
		q->mistake = ERROR_NOTFOUND;
		return;
	}
	q->resumes = true;
	if (from != k)
		take_over(a, k, from);
}

/* The row shows a lock that is still held, or a turn that came meanwhile. */
void account_row_resumed(struct account *a, unsigned k, const struct asked *q, const struct reply_line *row)
{
	struct span as = reply_find(row, "owner");
	unsigned name = account_text(a, reply_find(row, "name")), owner = account_text(a, as.p ? as : SPAN(""));
	int64_t fence = reply_number(row, "fence", -1), count = reply_number(row, "count", -1);
	struct stake *s;

	PROMISE(q->resumes && name < TEXTS && owner < TEXTS);
	s = account_stake(a, k, name, owner);
	if (s && !s->lost && s->fence == fence) { /* also one that was granted while RESUME was not answered */
		PROMISE(count == s->count);
	} else {
		PROMISE(account_may_be_silent(a, k, name, fence) && count == 1);
		promise_fence_is_last(&a->promises, account_words(a, name), fence);
		account_surfaces(a, k, name, owner);
		s = s ? s : account_stake_new(a, k, name, owner);
		s->lost = s->owed = s->doubtful = s->again = false;
		s->count = 1;
		s->fence = fence;
	}
	account_silent_loss(a, name, s);
	s->due = s->expected = false;
	account_believes(a, s, q->sent, row);
}

void account_resumed(struct account *a, unsigned k)
{
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && s->client == k && s->due) {
			s->due = false;
			if (s->expected)
				continue;
			account_stake_lost(a, s);
			s->owed = true;
		}
}

static bool is_resuming(const struct client *c)
{
	const struct asked *q;

	TAILQ_FOREACH(q, &c->asked, next)
		if (q->resumes)
			return true;
	return false;
}

void account_promise_all_told(struct account *a)
{
	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++)
		PROMISE(!s->used || a->client[s->client].away || is_resuming(&a->client[s->client]) || (!s->owed && !s->due));
	for (unsigned k = 0; k < CLIENTS; k++)
		PROMISE(!a->client[k].open || !a->client[k].taken);
}
