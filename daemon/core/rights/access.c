/* SPDX-License-Identifier: BSD-2-Clause */
/* See rights.h. */
#include "daemon/core/rights/rights.h"

#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/jobs.h"
#include "daemon/core/session/semaphore.h"

/* What a request needs: a right, and for which names. */
enum need {
	NEED_NOT_DECIDED, /* denied */
	NEED_NOTHING,
	NEED_ANY,         /* some right: the request concerns only what the session has or asks for */
	NEED_LOCK,        /* lock, for each word; all words are names */
	NEED_LOCK_OR_HAVE, /* lock, for the name, unless the session has it: without the right it may still give the name back */
	NEED_LOCK_QUEUE,  /* lock, for the queue, and for the lock of the job */
	NEED_LOCK_JOB,    /* lock, for the queue if the request has one, unless the session has the job: without the right it may still end the job */
	NEED_LOOK,        /* look, for the word */
	NEED_LOOK_SOME,   /* look, for some name: the answer shows only such names */
	NEED_LOOK_ALL,    /* look, by a rule without names */
	NEED_LIST,        /* depends on what is listed */
	NEED_ADMIN,       /* admin, for the word */
	NEED_ADMIN_ALL    /* admin, by a rule without names */
};

static const unsigned char needs[VERB_N] = {
	[VERB_HELLO] = NEED_NOTHING,     [VERB_PING] = NEED_NOTHING,        [VERB_HELP] = NEED_NOTHING,
	[VERB_QUIT] = NEED_NOTHING,      [VERB_AUTH] = NEED_NOTHING,        [VERB_RESUME] = NEED_ANY, /* its secret is the proof */
	[VERB_CANCEL] = NEED_ANY,        [VERB_UNWATCH] = NEED_ANY,         [VERB_SUBSCRIBE] = NEED_ANY,
	[VERB_UNSUBSCRIBE] = NEED_ANY,   [VERB_LOCK] = NEED_LOCK,           [VERB_UNLOCK] = NEED_LOCK_OR_HAVE,
	[VERB_EXTEND] = NEED_LOCK,       [VERB_CHECK] = NEED_LOCK,          [VERB_LOCKALL] = NEED_LOCK,
	[VERB_LOCKANY] = NEED_LOCK,      [VERB_RATE] = NEED_LOCK,           [VERB_ACQUIRE] = NEED_LOCK,
	[VERB_RELEASE] = NEED_LOCK_OR_HAVE, [VERB_TAKE] = NEED_LOCK,           [VERB_DEFER] = NEED_LOCK_QUEUE,
	[VERB_DROP] = NEED_LOCK_QUEUE,
	[VERB_DONE] = NEED_LOCK_JOB,     [VERB_RETRY] = NEED_LOCK_JOB,      [VERB_SHOW] = NEED_LOOK,
	[VERB_COMPLETE] = NEED_LOOK_SOME, [VERB_RECENT] = NEED_LOOK_SOME,   [VERB_WATCH] = NEED_LOOK_SOME,
	[VERB_LIST] = NEED_LIST,         [VERB_STATS] = NEED_LOOK_ALL,      [VERB_BREAK] = NEED_ADMIN,
	[VERB_KILL] = NEED_ADMIN_ALL,    [VERB_DRAIN] = NEED_ADMIN_ALL,
};

static const char *right_word(unsigned right)
{
	return right == RIGHT_LOCK ? "lock" : right == RIGHT_LOOK ? "look" : "admin";
}

static bool denied(struct request_context *x, struct session *s, unsigned right, const struct rule *by)
{
	const char *verb = command_table[x->request.verb].word;

	metric_add(&x->core->metrics, METRIC_DENIED, !s->is_web);
	if (!by)
		send_error(x, s, x->request.tag, ERROR_DENIED, "%s needs the right '%s', which no rule gives to this peer here", verb, right_word(right));
	else
		send_error(x, s, x->request.tag, ERROR_DENIED, "%s needs the right '%s', which the rule in line %u does not give", verb, right_word(right),
		           by->line);
	return false;
}

/* name NULL: the request has no names. */
static bool allowed(struct request_context *x, struct session *s, unsigned right, const struct span *name)
{
	const struct rule *by = rules_decide(x->core->conf.rules, s, name);

	return (by && by->allow & right) || denied(x, s, right, by);
}

static bool allowed_some(struct request_context *x, struct session *s, unsigned rights)
{
	return rules_allow_some(x->core->conf.rules, s, rights) || denied(x, s, rights & RIGHT_LOOK ? RIGHT_LOOK : RIGHT_LOCK, NULL);
}

static bool allowed_field(struct request_context *x, struct session *s, enum field field)
{
	return !request_has(&x->request, field) || allowed(x, s, RIGHT_LOCK, &x->request.field[field].text);
}

static bool allowed_words(struct request_context *x, struct session *s, unsigned right)
{
	for (unsigned i = 0; i < x->request.words; i++)
		if (!allowed(x, s, right, &x->request.word[i]))
			return false;
	return true;
}

static bool allowed_list(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct span what = q->words > 0 ? q->word[0] : SPAN("locks");

	if (span_equal(what, SPAN("nodes")))
		return allowed(x, s, RIGHT_LOOK, NULL);
	if (span_equal(what, SPAN("jobs")) && request_has(q, FIELD_PREFIX))
		return allowed(x, s, RIGHT_LOOK, &q->field[FIELD_PREFIX].text);
	if (span_equal(what, SPAN("sessions")))
		return allowed_some(x, s, RIGHT_LOCK | RIGHT_LOOK | RIGHT_ADMIN);
	return allowed_some(x, s, RIGHT_LOOK);
}

/* Walks through all that the session has, so it is checked last. */
static bool has_or_awaits(const struct session *s, struct span name)
{
	const struct permit *p;

	PERMITS_FOREACH(p, s)
		if (span_equal(p->semaphore->name, name))
			return true;
	return session_has_claim(s, name);
}

static bool has_job(const struct request_context *x, const struct session *s)
{
	const struct request *q = &x->request;
	bool more;

	return job_find(s, request_has(q, FIELD_QUEUE) ? q->field[FIELD_QUEUE].text : SPAN(""), q->word[0], &more);
}

static bool rules_grant(struct request_context *x, struct session *s)
{
	unsigned line;

	switch ((enum need)needs[x->request.verb]) {
	case NEED_NOTHING:
		return true;
	case NEED_ANY:
		return allowed_some(x, s, RIGHT_LOCK | RIGHT_LOOK | RIGHT_ADMIN);
	case NEED_LOCK:
		return allowed_words(x, s, RIGHT_LOCK);
	case NEED_LOCK_OR_HAVE:
		return session_may_lock(x->core, s, x->request.word[0], &line) || has_or_awaits(s, x->request.word[0]) || allowed_words(x, s, RIGHT_LOCK);
	case NEED_LOCK_QUEUE:
		return allowed(x, s, RIGHT_LOCK, &x->request.word[0]) && allowed_field(x, s, FIELD_LOCK);
	case NEED_LOCK_JOB:
		return has_job(x, s) || (request_has(&x->request, FIELD_QUEUE) ? allowed_field(x, s, FIELD_QUEUE) : allowed_some(x, s, RIGHT_LOCK));
	case NEED_LOOK:
		return allowed_words(x, s, RIGHT_LOOK);
	case NEED_LOOK_SOME:
		return allowed_some(x, s, RIGHT_LOOK);
	case NEED_LOOK_ALL:
		return allowed(x, s, RIGHT_LOOK, NULL);
	case NEED_LIST:
		return allowed_list(x, s);
	case NEED_ADMIN:
		return allowed_words(x, s, RIGHT_ADMIN);
	case NEED_ADMIN_ALL:
		return allowed(x, s, RIGHT_ADMIN, NULL);
	case NEED_NOT_DECIDED:
		break;
	}
	return denied(x, s, RIGHT_ADMIN, NULL);
}

/* There are users, and a peer of another host has shown nothing. A peer of the web listener has shown its token. */
static bool must_show_itself(const struct request_context *x, const struct session *s)
{
	return !x->core->conf.rules && x->core->conf.users && !s->is_local && !s->is_web && !s->has_subject && !(s->identity && s->identity->user);
}

bool access_is_granted(struct request_context *x, struct session *s)
{
	if (x->core->conf.rules)
		return rules_grant(x, s);
	if (!must_show_itself(x, s) || needs[x->request.verb] == NEED_NOTHING)
		return true;
	send_error(x, s, x->request.tag, ERROR_AUTH, "say first who you are: AUTH user secret");
	return false;
}

bool access_is_decided(enum verb verb)
{
	return needs[verb] != NEED_NOT_DECIDED;
}
