/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients ask, and when their requests begin. */
#include "tests/fuzz/account.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

#define BOUND_US (30 * SEC) /* max_lease of the service */

static void promise_broken(const char *text)
{
	fprintf(stderr, "broken promise: %s\n", text);
	abort();
}

void account_init(struct account *a)
{
	for (unsigned k = 0; k < PARTIES; k++) {
		TAILQ_INIT(&a->client[k].asked);
		TAILQ_INIT(&a->client[k].orphan);
	}
	promises_init(&a->promises, promise_broken);
	account_text(a, SPAN("")); /* no owner */
}

void account_drop(struct client *c, struct asked *q)
{
	TAILQ_REMOVE(&c->asked, q, next);
	c->count--;
	free(q);
}

void account_asked_drop_all(struct askeds *list)
{
	struct asked *q;

	while ((q = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, q, next);
		free(q);
	}
}

void account_release(struct account *a)
{
	for (unsigned k = 0; k < PARTIES; k++) {
		account_asked_drop_all(&a->client[k].asked);
		account_asked_drop_all(&a->client[k].orphan);
	}
}

unsigned account_text(struct account *a, struct span text)
{
	unsigned t;

	for (t = 0; t < a->texts; t++)
		if (span_equal((struct span){a->text[t].p, a->text[t].n}, text))
			return t;
	if (t == TEXTS || text.n > NAME_MAX_BYTES)
		return TEXTS;
	if (text.n > 0)
		memcpy(a->text[t].p, text.p, text.n);
	a->text[t].n = text.n;
	return a->texts++;
}

struct span account_words(const struct account *a, unsigned text)
{
	return (struct span){a->text[text].p, a->text[text].n};
}

int64_t account_last_fence(const struct account *a, unsigned name)
{
	return promise_last_fence(&a->promises, account_words(a, name));
}

void account_believes(struct account *a, const struct stake *s, struct instant sent, const struct reply_line *line)
{
	belief_begins(&a->promises, account_holder_of(s), account_words(a, s->name), instant_add(sent, reply_number(line, "valid_ms", 0) * MSEC), false);
}

void account_stake_gone(struct account *a, struct stake *s)
{
	belief_ends(&a->promises, account_holder_of(s), account_words(a, s->name));
	s->used = false;
}

void account_stake_lost(struct account *a, struct stake *s)
{
	belief_ends(&a->promises, account_holder_of(s), account_words(a, s->name));
	s->lost = true;
	s->due = false;
}

struct stake *account_stake(struct account *a, unsigned k, unsigned name, unsigned owner)
{
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && s->client == k && s->name == name && s->owner == owner)
			return s;
	return NULL;
}

struct stake *account_holder(struct account *a, unsigned name)
{
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && !s->lost && s->name == name)
			return s;
	return NULL;
}

bool account_is_waiting(const struct asked *q)
{
	return q->verb == VERB_LOCK && q->begun && q->patient;
}

unsigned account_waiting(const struct account *a, unsigned name)
{
	const struct asked *q;
	unsigned n = 0;

	for (unsigned k = 0; k < CLIENTS; k++)
		TAILQ_FOREACH(q, &a->client[k].asked, next)
			n += account_is_waiting(q) && q->name == name;
	return n;
}

/* --- asking --- */

/* A client that asks for a shorter lease believes in no more than that from then on, less drift and slack, whatever the answer. */
static void account_shorten(struct account *a, unsigned k, const struct asked *q)
{
	struct stake *s = q->verb == VERB_EXTEND && q->ttl_us > 0 ? account_stake(a, k, q->name, q->owner) : NULL;

	if (s && !s->lost)
		belief_is_shortened(&a->promises, a->now, account_holder_of(s), account_words(a, s->name), q->ttl_us);
}

/* An UNLOCK with sync=yes releases the lock when it begins, whatever its answer. */
void account_begin(struct account *a, unsigned k, struct asked *q, bool at_once)
{
	struct stake *s = q->verb == VERB_UNLOCK && q->sync && !q->refused ? account_stake(a, k, q->name, q->owner) : NULL;

	q->begun = true;
	q->order = at_once ? ++a->order : 0;
	account_shorten(a, k, q);
	if (q->verb == VERB_RESUME)
		account_begin_resume(a, k, q);
	if (!s || s->lost || s->count > 1 || (q->has_fence && q->fence != s->fence))
		return;
	account_stake_gone(a, s);
	q->released = true;
}

struct asked *account_asked(struct client *c, struct span tag)
{
	struct asked *q;

	TAILQ_FOREACH(q, &c->asked, next)
		if (span_equal(span_of(q->tag), tag))
			return q;
	return NULL;
}

static void tag_keep(char *to, struct span tag)
{
	memcpy(to, tag.p, tag.n);
	to[tag.n] = '\0';
}

static struct asked *asked_new(struct client *c, struct span tag, bool first)
{
	struct asked *q = calloc(1, sizeof(*q));

	tag_keep(q->tag, tag);
	q->verb = VERB_N;
	if (first)
		TAILQ_INSERT_HEAD(&c->asked, q, next);
	else
		TAILQ_INSERT_TAIL(&c->asked, q, next);
	c->count++;
	return q;
}

/* 0: no session has this number and this secret. */
static uint64_t serial_take(const struct account *a, struct span number, struct span secret)
{
	char digits[24];

	for (const struct client *c = a->client; c < a->client + PARTIES; c++) {
		int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)c->serial);

		if (account_is_alive(c) && c->grace_us > 0 && span_equal((struct span){digits, (size_t)n}, number) && span_equal(span_of(c->secret), secret))
			return c->serial;
	}
	return 0;
}

/* False: the account cannot follow the request. */
static bool request_take(struct account *a, struct asked *q, const struct request *r)
{
	struct span owner = request_has(r, FIELD_OWNER) ? r->field[FIELD_OWNER].text : SPAN("");

	q->verb = r->verb;
	q->name = r->words > 0 && r->verb >= VERB_LOCK ? account_text(a, r->word[0]) : 0;
	a->named = q->name;
	q->owner = account_text(a, owner);
	q->ttl_us = request_has(r, FIELD_TTL) ? r->field[FIELD_TTL].number : 0;
	q->has_fence = request_has(r, FIELD_FENCE);
	q->fence = q->has_fence ? r->field[FIELD_FENCE].number : 0;
	q->sync = request_has(r, FIELD_SYNC) && r->field[FIELD_SYNC].number;
	q->has_grace = request_has(r, FIELD_GRACE);
	q->grace_us = q->has_grace ? r->field[FIELD_GRACE].number : 0;
	q->parts = r->verb == VERB_QUIT;
	q->patient = request_has(r, FIELD_WAIT) && r->field[FIELD_WAIT].number > 0;
	q->priority = request_has(r, FIELD_PRIORITY) ? (unsigned)r->field[FIELD_PRIORITY].number : 0;
	q->refused = request_has(r, FIELD_KEEP) && r->field[FIELD_KEEP].number > BOUND_US;
	if (r->verb == VERB_CANCEL)
		tag_keep(q->target, (struct span){r->word[0].p + 1, r->word[0].n - 1});
	if (r->verb == VERB_RESUME)
		q->serial = serial_take(a, r->word[0], r->word[1]);
	if (r->verb == VERB_LIST)
		q->what = r->words > 0 && r->word[0].n > 0 ? r->word[0].p[0] : 'l';
	return q->name < TEXTS && q->owner < TEXTS;
}

/* Is there room for this session, and for those of all other clients, when they lose their connections? */
static bool grace_is_followed(const struct account *a, unsigned k)
{
	unsigned away = 0;

	for (const struct client *c = a->client + CLIENTS; c < a->client + PARTIES; c++)
		away += c->away;
	return k != OBSERVER && away + 2 * CLIENTS < PARTIES;
}

/* The account knows the outcome of RESUME when it is said, unless it does not know what the asking session has. */
static bool resume_is_followed(const struct account *a, unsigned k, const struct request *r)
{
	const struct client *c = &a->client[k];
	const struct asked *q;

	TAILQ_FOREACH(q, &c->asked, next)
		if (r->tag.n == 0 && q->tag[0] == '\0')
			return false;
	for (const struct stake *s = a->stake; s < a->stake + STAKES; s++)
		if (s->used && s->client == k && s->doubtful)
			return false;
	for (unsigned t = 0; t < a->texts; t++)
		if (a->text[t].silent.serial == c->serial)
			return false;
	return k != OBSERVER && TAILQ_EMPTY(&c->orphan);
}

static bool request_is_followed(const struct account *a, unsigned k, const struct request *r)
{
	if (request_has(r, FIELD_COUNT))
		return false;
	switch (r->verb) {
	case VERB_HELLO:
		return !request_has(r, FIELD_GRACE) || grace_is_followed(a, k);
	case VERB_RESUME:
		return resume_is_followed(a, k, r);
	case VERB_LOCK:
		return !request_has(r, FIELD_MODE) || r->field[FIELD_MODE].number == MODE_EXCLUSIVE;
	case VERB_WATCH:
	case VERB_UNWATCH:
	case VERB_SUBSCRIBE:
	case VERB_UNSUBSCRIBE:
	case VERB_BREAK:
	case VERB_KILL:
		return k != OBSERVER;
	case VERB_CHECK:
		return !request_has(r, FIELD_JOB);
	case VERB_LIST:
		return r->words == 0 || !(span_equal(r->word[0], SPAN("jobs")) || span_equal(r->word[0], SPAN("queues")));
	case VERB_PING:
	case VERB_HELP:
	case VERB_QUIT:
	case VERB_UNLOCK:
	case VERB_EXTEND:
	case VERB_CANCEL:
	case VERB_SHOW:
	case VERB_COMPLETE:
	case VERB_RECENT:
	case VERB_FORGET:
	case VERB_STATS:
		return true;
	default:
		return false;
	}
}

static bool line_take(struct account *a, unsigned k, char *line, size_t n)
{
	struct client *c = &a->client[k];
	struct request r;
	struct mistake m;
	enum parse_outcome outcome = request_parse(line, n, &r, &m);
	struct asked *before, *q;

	if (outcome == PARSE_EMPTY || outcome == PARSE_HTTP) /* HTTP is hung up on, without a line */
		return true;
	if (outcome == PARSE_OK && !request_is_followed(a, k, &r))
		return false;
	before = r.tag.n > 0 ? account_asked(c, r.tag) : NULL;
	q = asked_new(c, r.tag, before != NULL);
	q->sent = a->now;
	q->mistake = outcome == PARSE_OK ? ERROR_TAGINUSE : m.code;
	if (outcome == PARSE_OK && !before && !request_take(a, q, &r)) {
		account_drop(c, q);
		return false;
	}
	if (r.tag.n > 0 || account_asked(c, SPAN("")) == q)
		account_begin(a, k, q, true);
	return true;
}

bool account_says(struct account *a, unsigned k, const char *line, size_t n)
{
	struct client *c = &a->client[k];
	static char copy[LINE_MAX_DEFAULT];
	struct asked *q;

	if (c->count >= ASKED_MAX)
		return false;
	if (line) {
		memcpy(copy, line, n);
		return line_take(a, k, copy, n);
	}
	q = asked_new(c, SPAN(""), false);
	q->mistake = ERROR_TOOLONG;
	if (account_asked(c, SPAN("")) == q)
		account_begin(a, k, q, true);
	return true;
}

void account_opened(struct account *a, unsigned k, uint64_t serial)
{
	struct client *c = &a->client[k];

	PROMISE(!c->open && TAILQ_EMPTY(&c->asked) && TAILQ_EMPTY(&c->orphan));
	*c = (struct client){.open = true, .serial = serial};
	TAILQ_INIT(&c->asked);
	TAILQ_INIT(&c->orphan);
}

static void account_end_stakes(struct account *a, unsigned k, bool unsure)
{
	for (struct stake *s = a->stake; s < a->stake + STAKES; s++) {
		if (!s->used || s->client != k)
			continue;
		if (!s->lost && unsure)
			belief_passes(&a->promises, account_holder_of(s), NOBODY, account_words(a, s->name));
		account_stake_gone(a, s);
	}
}

void account_over(struct account *a, unsigned k, bool unsure)
{
	struct client *c = &a->client[k];

	account_asked_drop_all(&c->asked);
	account_asked_drop_all(&c->orphan);
	c->count = 0;
	c->away = false;
	for (unsigned t = 0; t < a->texts; t++)
		if (a->text[t].silent.serial == c->serial)
			a->text[t].silent.serial = 0;
	account_end_stakes(a, k, unsure);
}

void account_ended(struct account *a, unsigned k, bool unsure)
{
	struct client *c = &a->client[k];

	PROMISE(c->open);
	unsure = c->killed || ((unsure || c->flooded) && !c->half_closed);
	c->open = false;
	if (c->taken)
		return;
	if (c->grace_us > 0 && !c->half_closed && !c->killed)
		account_detach(a, k, unsure);
	else
		account_over(a, k, unsure);
}
