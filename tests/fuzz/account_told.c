/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers and pushes: which of them are allowed, and what the account concludes from them. */
#include "tests/fuzz/account.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

struct stake *account_stake_new(struct account *a, unsigned k, unsigned name, unsigned owner)
{
	struct stake *s = a->stake;

	while (s->used)
		PROMISE(++s < a->stake + STAKES);
	*s = (struct stake){.used = true, .client = k, .name = name, .owner = owner};
	return s;
}

static bool is_error(const struct reply_line *line, enum error code)
{
	return line->kind == LINE_ERR && span_equal(line->code, span_of(error_word(code)));
}

static bool name_leads_to(struct account *a, unsigned name, unsigned k, unsigned owner, bool *visited, bool maybe);

/* Follows the names that this owner of the party waits for; TEXTS: any owner. maybe: also those that it only waits for the stores to answer about. */
static bool waits_lead_to(struct account *a, const struct client *c, unsigned as, unsigned k, unsigned owner, bool *visited, bool maybe)
{
	const struct asked *q;

	TAILQ_FOREACH(q, &c->asked, next)
		if ((account_is_waiting(q) || (maybe && q->verb == VERB_LOCK && q->begun)) && (as == TEXTS || q->owner == as) && !visited[q->name] &&
		    name_leads_to(a, q->name, k, owner, visited, maybe))
			return true;
	TAILQ_FOREACH(q, &c->orphan, next)
		if (maybe && (as == TEXTS || q->owner == as) && !visited[q->name] && name_leads_to(a, q->name, k, owner, visited, maybe))
			return true;
	return false;
}

static bool list_leads_to(struct account *a, const struct askeds *list, const struct client *c, unsigned name, unsigned k, unsigned owner, bool *visited)
{
	const struct asked *q;

	TAILQ_FOREACH(q, list, next)
		if (q->verb == VERB_LOCK && q->begun && q->name == name &&
		    ((c == &a->client[k] && q->owner == owner) || waits_lead_to(a, c, q->owner, k, owner, visited, true)))
			return true;
	return false;
}

/* Does the name lead to (k, owner) along "waits for"? maybe: also by way of waiters, and of orphans and turns whose clients were not told. */
static bool name_leads_to(struct account *a, unsigned name, unsigned k, unsigned owner, bool *visited, bool maybe)
{
	const struct stake *holder = account_holder(a, name);
	uint64_t silent = maybe ? a->text[name].silent.serial : 0;

	visited[name] = true;
	if (holder && ((holder->client == k && holder->owner == owner) ||
	               waits_lead_to(a, &a->client[holder->client], holder->owner, k, owner, visited, maybe)))
		return true;
	for (const struct client *c = a->client; c < a->client + PARTIES && maybe; c++) {
		if (silent > 0 && account_is_alive(c) && c->serial == silent &&
		    (c == &a->client[k] || waits_lead_to(a, c, TEXTS, k, owner, visited, true)))
			return true;
		if (list_leads_to(a, &c->asked, c, name, k, owner, visited) || list_leads_to(a, &c->orphan, c, name, k, owner, visited))
			return true;
	}
	return false;
}

void account_promise_no_deadlock(struct account *a)
{
	const struct asked *q;

	for (unsigned k = 0; k < CLIENTS; k++)
		TAILQ_FOREACH(q, &a->client[k].asked, next) {
			bool visited[TEXTS] = {false};
			const struct stake *own = account_stake(a, k, q->name, q->owner);

			/* A LOCK of a name that its owner may still hold waits for the stores alone. */
			if (account_is_waiting(q) && !(own && own->expected))
				PROMISE(!name_leads_to(a, q->name, k, q->owner, visited, false));
		}
}

static void grant_begins(struct account *a, unsigned k, const struct asked *q, struct stake *s, int64_t fence)
{
	if (!account_is_silent_turn(a, k, q->name, fence)) {
		promise_fence_grows(&a->promises, account_words(a, q->name), fence);
		account_promise_not_believed(a, q->name, s);
	}
	account_surfaces(a, k, q->name, q->owner);
	s = s ? s : account_stake_new(a, k, q->name, q->owner);
	s->lost = s->owed = s->doubtful = s->expected = s->again = false;
	s->count = 1;
	s->fence = fence;
}

/* An UNLOCK with sync=yes that waited for the first of two LOCKs begins when both are granted, and takes one back. */
static struct stake *stake_taken_back(struct account *a, unsigned k, const struct asked *lock, int64_t fence)
{
	struct asked *q;
	struct stake *s;

	TAILQ_FOREACH(q, &a->client[k].asked, next)
		if (q->released && !q->order && q->name == lock->name && q->owner == lock->owner)
			break;
	PROMISE(q && fence == account_last_fence(a, lock->name));
	q->released = false;
	s = account_stake_new(a, k, lock->name, lock->owner);
	s->fence = fence;
	s->count = 1;
	return s;
}

/* A grant, or one more count of a lock that is held. */
static void lock_granted(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct stake *s = account_stake(a, k, q->name, q->owner);
	int64_t fence = reply_number(line, "fence", -1), count = reply_number(line, "count", -1);

	PROMISE(!q->cancelled);
	if (!s && count == 2)
		s = stake_taken_back(a, k, q, fence);
	if (s && !s->lost) {
		PROMISE(fence == s->fence && count == s->count + 1);
		s->count++;
	} else {
		PROMISE(count == 1);
		grant_begins(a, k, q, s, fence);
		s = account_stake(a, k, q->name, q->owner);
	}
	account_believes(a, s, q->sent, line);
}

static void lock_refused(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	bool visited[TEXTS] = {false};

	PROMISE(line->kind != LINE_BUSY || !q->patient);
	PROMISE(line->kind != LINE_TIMEOUT || q->patient);
	PROMISE(is_error(line, ERROR_CANCELLED) || !q->cancelled);
	if (line->kind != LINE_ERR)
		return;
	if (is_error(line, ERROR_CANCELLED)) {
		PROMISE(q->cancelled || a->client[k].leaving);
		return;
	}
	if (is_error(line, ERROR_DEADLOCK)) {
		PROMISE(q->patient && name_leads_to(a, q->name, k, q->owner, visited, true));
		return;
	}
	PROMISE(is_error(line, ERROR_QUORUM) || is_error(line, ERROR_LIMIT) || is_error(line, ERROR_ARG));
}

static void unlock_answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct stake *s = account_stake(a, k, q->name, q->owner);
	bool meant = s && !(q->has_fence && q->fence != s->fence);

	if (q->released) {
		PROMISE((line->kind == LINE_OK && reply_number(line, "count", -1) == 0) || is_error(line, ERROR_QUORUM) || is_error(line, ERROR_LOST));
	} else if (line->kind == LINE_OK && (!s || s->lost) && account_may_be_silent(a, k, q->name, q->has_fence ? q->fence : 0)) {
		PROMISE(reply_number(line, "count", -1) == 0);
		account_surfaces(a, k, q->name, q->owner);
		if (s)
			account_stake_gone(a, s);
	} else if (line->kind == LINE_OK) {
		PROMISE(meant && !s->lost && reply_number(line, "count", -1) == s->count - 1);
		if (--s->count == 0)
			account_stake_gone(a, s);
	} else if (is_error(line, ERROR_LOST)) {
		PROMISE(meant && s->lost);
		account_stake_gone(a, s);
	} else if (is_error(line, ERROR_NOTHELD)) {
		PROMISE(!meant || s->doubtful);
	} else {
		PROMISE(is_error(line, ERROR_LIMIT));
	}
}

/* CHECK is answered from memory, EXTEND after the stores were asked: meanwhile the lock may have been unlocked, lost or taken anew. */
static void held_answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct stake *s = account_stake(a, k, q->name, q->owner);

	if (line->kind == LINE_OK) {
		if ((!s || s->lost) && account_may_be_silent(a, k, q->name, reply_number(line, "fence", -1))) {
			grant_begins(a, k, q, s, reply_number(line, "fence", -1));
			s = account_stake(a, k, q->name, q->owner);
		}
		PROMISE(s && !s->lost && reply_number(line, "fence", -1) == s->fence);
		promise_fence_is_last(&a->promises, account_words(a, q->name), s->fence);
		PROMISE(q->verb == VERB_EXTEND || reply_number(line, "count", -1) == s->count);
		account_believes(a, s, q->sent, line);
		s->expected = false;
		return;
	}
	if (is_error(line, ERROR_NOTHELD))
		PROMISE(!s || s->doubtful);
	else if (is_error(line, ERROR_LOST))
		PROMISE(q->verb == VERB_EXTEND || (s && s->lost));
	else if (s && s->expected)
		PROMISE(is_error(line, ERROR_QUORUM));
	else
		PROMISE(q->verb == VERB_EXTEND && (is_error(line, ERROR_QUORUM) || is_error(line, ERROR_LIMIT)));
}

static void cancel_answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct asked *target = account_asked(&a->client[k], span_of(q->target));

	if (target && target->verb != VERB_LOCK)
		target = NULL;
	PROMISE(line->kind == LINE_OK ? target != NULL : is_error(line, ERROR_NOTFOUND) && !target);
	if (target)
		target->cancelled = true;
}

static void hello_answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct client *c = &a->client[k];
	struct span secret = reply_find(line, "secret");

	if (line->kind != LINE_OK)
		return;
	if (c->serial == 0)
		c->serial = (uint64_t)reply_number(line, "session", 0);
	PROMISE(reply_number(line, "session", -1) == (int64_t)c->serial && secret.n < sizeof(c->secret));
	memcpy(c->secret, secret.p, secret.n);
	c->secret[secret.n] = '\0';
	if (q->has_grace)
		c->grace_us = q->grace_us;
}

static void resume_answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	PROMISE(q->resumes ? line->kind == LINE_OK : is_error(line, q->mistake));
	if (!q->resumes)
		return;
	PROMISE(reply_number(line, "session", -1) == (int64_t)a->client[k].serial && reply_number(line, "n", -1) == q->rows);
	account_resumed(a, k);
}

/* Whoever may not, or asks for too much, is told so. */
static void forced(struct account *a, const struct asked *q, const struct reply_line *line)
{
	if (line->kind == LINE_OK && q->verb == VERB_KILL)
		account_killed(a, (uint64_t)reply_number(line, "session", 0));
	else if (line->kind == LINE_OK)
		PROMISE(reply_number(line, "free_in_ms", -1) >= 0);
	else
		PROMISE(is_error(line, ERROR_DENIED) || is_error(line, ERROR_NOTFOUND) || is_error(line, ERROR_LIMIT) ||
			is_error(line, q->verb == VERB_KILL ? ERROR_ARG : ERROR_QUORUM));
}

static void watch_answered(struct client *c, const struct asked *q, const struct reply_line *line)
{
	if (q->verb == VERB_SUBSCRIBE || q->verb == VERB_UNSUBSCRIBE) {
		PROMISE(line->kind == LINE_OK);
		c->subscribed = q->verb == VERB_SUBSCRIBE;
	} else if (line->kind == LINE_OK) {
		c->watches = reply_number(line, "prefixes", -1) > 0;
		PROMISE(c->watches || q->verb == VERB_UNWATCH);
	} else {
		PROMISE(is_error(line, q->verb == VERB_WATCH ? ERROR_LIMIT : ERROR_NOTFOUND));
	}
}

static void answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	PROMISE(!is_error(line, ERROR_INTERNAL));
	PROMISE(q->verb == VERB_LOCK || line->kind == LINE_OK || line->kind == LINE_ERR);
	a->client[k].half_closed |= q->parts;
	switch (q->verb) {
	case VERB_N:
		PROMISE(is_error(line, q->mistake));
		break;
	case VERB_LOCK:
		if (line->kind == LINE_OK)
			lock_granted(a, k, q, line);
		else
			lock_refused(a, k, q, line);
		break;
	case VERB_UNLOCK:
		unlock_answered(a, k, q, line);
		break;
	case VERB_EXTEND:
	case VERB_CHECK:
		held_answered(a, k, q, line);
		break;
	case VERB_CANCEL:
		cancel_answered(a, k, q, line);
		break;
	case VERB_HELLO:
		hello_answered(a, k, q, line);
		break;
	case VERB_RESUME:
		resume_answered(a, k, q, line);
		break;
	case VERB_BREAK:
	case VERB_KILL:
		forced(a, q, line);
		break;
	case VERB_WATCH:
	case VERB_UNWATCH:
	case VERB_SUBSCRIBE:
	case VERB_UNSUBSCRIBE:
		watch_answered(&a->client[k], q, line);
		break;
	case VERB_PING:
	case VERB_QUIT:
		PROMISE(line->kind == LINE_OK);
		break;
	case VERB_FORGET:
		PROMISE(line->kind == LINE_OK || is_error(line, ERROR_NOTFOUND));
		break;
	default:
		account_rows_done(a, k, q, line);
		break;
	}
}

static void pushed(struct account *a, unsigned k, const struct reply_line *line)
{
	struct span owner = reply_find(line, "owner");
	struct stake *s = account_stake(a, k, account_text(a, reply_find(line, "name")), account_text(a, owner.p ? owner : SPAN("")));

	if (span_equal(line->code, SPAN("EVENT"))) {
		PROMISE(a->client[k].watches);
		return;
	}
	PROMISE(s && reply_number(line, "fence", -1) == s->fence);
	if (span_equal(line->code, SPAN("CONTENDED"))) {
		PROMISE(a->client[k].subscribed && !s->lost && !s->due && reply_number(line, "waiters", 0) > 0);
	} else if (span_equal(line->code, SPAN("LOST"))) {
		PROMISE(!s->lost || s->owed || s->again);
		account_stake_lost(a, s);
		s->owed = s->again = false;
	} else {
		PROMISE(!s->lost && !s->due);
		s->expected = false;
	}
}

void account_told(struct account *a, unsigned k, const struct reply_line *line)
{
	struct client *c = &a->client[k];
	struct asked *q = account_asked(c, line->tag), *next;

	account_expire(a, false);
	PROMISE(c->open && !c->taken);
	if (line->kind == LINE_PUSH) {
		pushed(a, k, line);
		return;
	}
	if (is_error(line, ERROR_LIMIT) && span_starts(line->text, SPAN("mistakes="))) {
		c->flooded = true; /* this line answers no request */
		return;
	}
	PROMISE(q && q->begun);
	if (line->kind == LINE_ROW) {
		account_row(a, k, q, line);
		return;
	}
	TAILQ_REMOVE(&c->asked, q, next);
	answered(a, k, q, line);
	TAILQ_INSERT_HEAD(&c->asked, q, next);
	account_drop(c, q);
	next = account_asked(c, SPAN(""));
	if (next && !next->begun)
		account_begin(a, k, next, false);
}
