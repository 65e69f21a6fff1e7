/* SPDX-License-Identifier: BSD-2-Clause */
/* What is answered and pushed: what may be, and what follows from it. */
#include "tests/fuzz/account.h"
#include "tests/fuzz/fuzz.h"

static struct stake *stake_new(struct account *a, unsigned k, unsigned name, unsigned owner)
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

/* Along "waits for": does the name lead to (k, owner)? Who stands in line is in the way as well as who holds. */
static bool name_leads_to(struct account *a, unsigned name, unsigned k, unsigned owner, bool *visited, bool lines)
{
	const struct stake *holder = account_holder(a, name);
	const struct asked *q, *next;

	visited[name] = true;
	if (holder && holder->client == k && holder->owner == owner)
		return true;
	for (unsigned other = 0; other < CLIENTS; other++)
		TAILQ_FOREACH(q, &a->client[other].asked, next) {
			bool in_line = lines && q->verb == VERB_LOCK && q->begun && q->name == name;

			if (!in_line && !(holder && holder->client == other && holder->owner == q->owner))
				continue;
			if (in_line && other == k && q->owner == owner)
				return true;
			TAILQ_FOREACH(next, &a->client[other].asked, next)
				if (next->verb == VERB_LOCK && next->begun && next->patient && next->owner == q->owner && !visited[next->name] &&
				    name_leads_to(a, next->name, k, owner, visited, lines))
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

			if (account_is_waiting(q))
				PROMISE(!name_leads_to(a, q->name, k, q->owner, visited, false));
		}
}

/* A grant, or one more of what is held. */
static void lock_granted(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct stake *s = account_stake(a, k, q->name, q->owner);
	int64_t fence = reply_number(line, "fence", -1), count = reply_number(line, "count", -1);

	PROMISE(!q->cancelled);
	if (s && !s->lost) {
		PROMISE(fence == s->fence && count == s->count + 1);
		s->count++;
	} else {
		PROMISE(!account_holder(a, q->name));
		PROMISE(!instant_before(a->now, a->text[q->name].until));
		PROMISE(count == 1 && fence > a->text[q->name].fence && fence < COUNT_MAX);
		s = s ? s : stake_new(a, k, q->name, q->owner);
		s->lost = false;
		s->count = 1;
		a->text[q->name].fence = s->fence = fence;
	}
	s->until = instant_add(q->sent, reply_number(line, "valid_ms", 0) * MSEC);
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
	} else if (line->kind == LINE_OK) {
		PROMISE(meant && !s->lost && reply_number(line, "count", -1) == s->count - 1);
		s->used = --s->count > 0;
	} else if (is_error(line, ERROR_LOST)) {
		PROMISE(meant && s->lost);
		s->used = false;
	} else if (is_error(line, ERROR_NOTHELD)) {
		PROMISE(!meant);
	} else {
		PROMISE(is_error(line, ERROR_LIMIT));
	}
}

/* CHECK is answered from memory, EXTEND after the stores were asked: meanwhile it may have been unlocked, or lost, or taken anew. */
static void held_answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	struct stake *s = account_stake(a, k, q->name, q->owner);

	if (line->kind == LINE_OK) {
		PROMISE(s && !s->lost && reply_number(line, "fence", -1) == s->fence);
		PROMISE(q->verb == VERB_EXTEND || reply_number(line, "count", -1) == s->count);
		s->until = instant_add(q->sent, reply_number(line, "valid_ms", 0) * MSEC);
		return;
	}
	if (is_error(line, ERROR_NOTHELD))
		PROMISE(!s);
	else if (is_error(line, ERROR_LOST))
		PROMISE(q->verb == VERB_EXTEND || (s && s->lost));
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

static void answered(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line)
{
	PROMISE(!is_error(line, ERROR_INTERNAL));
	PROMISE(q->verb == VERB_LOCK || line->kind == LINE_OK || line->kind == LINE_ERR);
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
		PROMISE(line->kind == LINE_ERR || reply_number(line, "session", -1) == (int64_t)a->client[k].serial);
		break;
	case VERB_PING:
	case VERB_QUIT:
		PROMISE(line->kind == LINE_OK);
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

	PROMISE(s && !s->lost && reply_number(line, "fence", -1) == s->fence);
	s->lost = span_equal(line->code, SPAN("LOST"));
}

void account_told(struct account *a, unsigned k, const struct reply_line *line)
{
	struct client *c = &a->client[k];
	struct asked *q = account_asked(c, line->tag), *next;

	if (line->kind == LINE_PUSH) {
		pushed(a, k, line);
		return;
	}
	if (is_error(line, ERROR_LIMIT) && span_starts(line->text, SPAN("mistakes="))) {
		c->flooded = true; /* answers no request */
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
