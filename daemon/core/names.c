/* SPDX-License-Identifier: BSD-2-Clause */
/* See names.h. */
#include "daemon/core/names.h"

#include "daemon/base/mem.h"
#include "daemon/core/pending.h"
#include "daemon/core/rows.h"
#include "daemon/core/rules.h"
#include "daemon/core/tell.h"


#define COMPLETE_DEFAULT 10
#define COMPLETE_MOST    1000

/*
 * A question to the stores. It lives until the last of them has answered, though its request may be answered before. Each store is asked one at a time, in the
 * order of the requests: the answer may be a thousand names, and renewals of leases wait behind it. FORGET is short, and goes to all stores at once.
 */
struct inquiry {
	TAILQ_ENTRY(inquiry) next;
	struct timer timer;
	struct name name; /* of the calls: they are about no lock */
	char nothing[1];  /* the text of that name */
	struct calls calls;
	struct buf asked;        /* what the calls say */
	struct nodeset unasked;  /* stores that are asked when they have answered another question */
	struct pending *pending; /* NULL: the request is answered */
	enum verb verb;
	struct roll found; /* RECENT: in the order in which they were found, else by name */
	size_t limit;
	bool told;      /* a store has answered */
	bool forgotten; /* FORGET: it was there */
	size_t prefix_n;
	char prefix[];
};

static struct span inquiry_prefix(const struct inquiry *q)
{
	return (struct span){q->prefix, q->prefix_n};
}

static struct inquiry *inquiry_new(struct commander *x, struct span prefix, size_t limit)
{
	struct inquiry *q = mem_alloc(sizeof(*q) + prefix.n);

	q->timer.kind = TIMER_INQUIRY;
	q->name.text = q->nothing;
	q->verb = x->request.verb;
	q->limit = limit;
	q->prefix_n = prefix.n;
	if (prefix.n > 0)
		memcpy(q->prefix, prefix.p, prefix.n);
	roll_init(&q->found, noted_here(x)->users.by_name.key, COMPLETE_MOST * (NODES_MAX + 1));
	return q;
}

static void inquiry_free(struct inquiry *q)
{
	roll_release(&q->found);
	buf_release(&q->asked);
	mem_free(q);
}

/* Names that were found before keep their place. */
static void inquiry_find(struct inquiry *q, struct span name)
{
	if (span_starts(name, inquiry_prefix(q)) && !roll_find(&q->found, name.p, name.n))
		roll_note(&q->found, name.p, name.n, NULL);
}

/* --- the answer ------------------------------------------------------------------------------------------------------ */

static const struct roll_item *first_of(const struct inquiry *q)
{
	return q->verb == VERB_RECENT ? TAILQ_FIRST(&q->found.by_age) : roll_from(&q->found, "", 0);
}

static const struct roll_item *next_of(const struct inquiry *q, const struct roll_item *item)
{
	return q->verb == VERB_RECENT ? TAILQ_NEXT(item, by_age) : roll_next(item);
}

static void tell_names(struct commander *x, struct session *s, struct span tag, const struct inquiry *q)
{
	size_t begin = s->unsent, n = 0;
	struct reply r;

	for (const struct roll_item *item = first_of(q); item && n < q->limit && !rows_are_long(x, s->unsent - begin); item = next_of(q, item)) {
		if (!session_may_look(x->core, s, (struct span){item->text, item->n}))
			continue;
		row_begin(x, tag, &r);
		reply_text(&r, "name", (struct span){item->text, item->n});
		row_end(x, s, &r);
		n++;
	}
	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_int(&r, "n", (int64_t)n);
	if (x->core->conf.shared && !q->told)
		reply_text(&r, "partial", SPAN("yes"));
	tell_line(x, s, &r);
}

static void tell_forgotten(struct commander *x, struct session *s, struct span tag, const struct inquiry *q)
{
	struct reply r;

	if (!q->forgotten && x->core->conf.shared && !q->told) {
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "no store could be asked whether this user has locked it; LIST nodes shows them");
		return;
	}
	if (!q->forgotten) {
		tell_error(x, s, tag, ERROR_NOTFOUND, "it is not among the names that this user locked last: RECENT shows them");
		return;
	}
	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_text(&r, "name", inquiry_prefix(q));
	tell_line(x, s, &r);
}

static void inquiry_tell(struct commander *x, struct session *s, struct span tag, const struct inquiry *q)
{
	core_answers(x->core, q->verb);
	(q->verb == VERB_FORGET ? tell_forgotten : tell_names)(x, s, tag, q);
}

static void inquiry_answer(struct commander *x, struct inquiry *q)
{
	struct pending *p = q->pending;
	struct session *s = p ? p->session : NULL;

	q->pending = NULL;
	heap_cancel(&x->core->timers, &q->timer);
	if (s) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		if (!s->over)
			inquiry_tell(x, s, span_of(p->tag), q);
		session_answered(x->sessions, s, p->tag[0] != '\0');
	}
	pool_put(&x->engine->table.pendings, p);
}

static void inquiry_end(struct commander *x, struct inquiry *q)
{
	inquiry_answer(x, q);
	calls_close(&x->engine->calls, &q->calls);
	TAILQ_REMOVE(&x->inquiries, q, next);
	inquiry_free(q);
}

void names_free(struct commander *x)
{
	struct inquiry *q;

	while ((q = TAILQ_FIRST(&x->inquiries))) {
		if (q->pending)
			q->pending->session = NULL;
		inquiry_end(x, q);
	}
	noted_close(x);
}

static bool inquiry_is_over(const struct inquiry *q)
{
	return !nodeset_any(q->calls.open) && !nodeset_any(q->unasked);
}

void names_fired(struct commander *x, struct timer *t)
{
	struct inquiry *q = container_of(t, struct inquiry, timer);

	calls_stall(&x->engine->calls, &q->calls);
	q->unasked = NODESET_NONE;
	if (inquiry_is_over(q))
		inquiry_end(x, q);
	else
		inquiry_answer(x, q);
}

static bool waits_its_turn(const struct inquiry *q)
{
	return q->verb != VERB_FORGET;
}

static void inquiry_ask(struct commander *x, struct inquiry *q, unsigned node)
{
	struct span asked = {buf_begin(&q->asked), buf_length(&q->asked)};

	asked.p = arena_copy(&x->core->out->arena, asked.p, asked.n);
	nodeset_remove(&q->unasked, node);
	if (waits_its_turn(q))
		nodeset_add(&x->inquired, node);
	noted_ask(x, &q->calls, node, asked);
}

/* The store has answered: the next question is for it. One that cannot be used any more is asked nothing. */
static void ask_next(struct commander *x, unsigned node)
{
	bool usable = member_usable(&x->engine->members.node[node]);
	struct inquiry *q, *next;

	nodeset_remove(&x->inquired, node);
	for (q = TAILQ_FIRST(&x->inquiries); q && !nodeset_has(x->inquired, node); q = next) {
		next = TAILQ_NEXT(q, next);
		if (!nodeset_has(q->unasked, node))
			continue;
		if (usable) {
			inquiry_ask(x, q, node);
			continue;
		}
		nodeset_remove(&q->unasked, node);
		if (inquiry_is_over(q))
			inquiry_end(x, q);
	}
}

/* --- what a store answers -------------------------------------------------------------------------------------------- */

static bool number_take(struct span *rest, size_t *ret_n)
{
	size_t n = 0, i = 0;

	for (; i < rest->n && i < 6 && rest->p[i] >= '0' && rest->p[i] <= '9'; i++)
		n = 10 * n + (size_t)(rest->p[i] - '0');
	*rest = (struct span){rest->p + i, rest->n - i};
	*ret_n = n;
	return i > 0;
}

static void inquiry_read(struct inquiry *q, struct span list)
{
	size_t n, count = 0;

	while (count++ < COMPLETE_MOST && number_take(&list, &n) && list.n > n && list.p[0] == ':') {
		if (n > 0 && n <= NAME_MAX_BYTES)
			inquiry_find(q, (struct span){list.p + 1, n});
		list = (struct span){list.p + 1 + n, list.n - 1 - n};
	}
}

static void inquiry_answered(struct commander *x, struct inquiry *q, const struct answer *a)
{
	struct span found = a->found;
	size_t n;

	if (a->class == ANSWER_EXECUTED && a->code == 'T') {
		q->told = true;
		if (q->verb != VERB_FORGET)
			inquiry_read(q, found);
		else if (number_take(&found, &n))
			q->forgotten |= n > 0;
	}
	if (inquiry_is_over(q))
		inquiry_end(x, q);
}

void names_answered(struct commander *x, const struct answer *a)
{
	struct calls *c = a->call < x->engine->calls.slots ? x->engine->calls.slot[a->call] : NULL;
	struct inquiry *q;
	bool waited;

	if (!c || (c->owner != CALLS_OF_NOTES && c->owner != CALLS_OF_INQUIRY))
		return;
	x->asked_names--;
	if (c->owner == CALLS_OF_NOTES) {
		noted_answered(x, a);
		return;
	}
	q = container_of(c, struct inquiry, calls);
	waited = waits_its_turn(q);
	inquiry_answered(x, q, a);
	if (waited)
		ask_next(x, a->node);
}

/* --- the requests ---------------------------------------------------------------------------------------------------- */

static void ask_stores(struct commander *x, struct inquiry *q)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		if (!member_usable(&x->engine->members.node[i]))
			continue;
		if (waits_its_turn(q) && nodeset_has(x->inquired, i))
			nodeset_add(&q->unasked, i);
		else
			inquiry_ask(x, q, i);
	}
}

/* Asks the stores what stands in q->asked, if others share them, and answers. Owns the inquiry from now on. */
static void inquiry_begin(struct commander *x, struct session *s, struct inquiry *q)
{
	if (!x->core->conf.shared || members_usable(&x->engine->members) == 0) {
		inquiry_tell(x, s, x->request.tag, q);
		inquiry_free(q);
		return;
	}
	calls_open(&x->engine->calls, &q->calls, CALLS_OF_INQUIRY, &q->name);
	TAILQ_INSERT_TAIL(&x->inquiries, q, next);
	q->pending = pending_of_request(x, s, NULL);
	heap_set(&x->core->timers, &q->timer, instant_add(x->core->now, x->core->conf.timeout_us));
	ask_stores(x, q);
}

/* False: it is answered. */
static bool request_limit(struct commander *x, struct session *s, size_t most, size_t *limit)
{
	const struct request *q = &x->request;

	if (!request_has(q, FIELD_LIMIT))
		return true;
	if (q->field[FIELD_LIMIT].number > (int64_t)most) {
		tell_mistake(x, s, ERROR_LIMIT, "limit may be at most %zu", most);
		return false;
	}
	*limit = (size_t)q->field[FIELD_LIMIT].number;
	return true;
}

void serve_COMPLETE(struct commander *x, struct session *s)
{
	struct span prefix = x->request.words > 0 ? x->request.word[0] : SPAN("");
	size_t limit = COMPLETE_DEFAULT;
	const struct roll_item *item;
	struct inquiry *q;

	if (!request_limit(x, s, COMPLETE_MOST, &limit) || !pendings_within_limit(x, s))
		return;
	if (prefix.n > NAME_MAX_BYTES) {
		tell_mistake(x, s, ERROR_LIMIT, "a prefix may have at most %d bytes, as a name", NAME_MAX_BYTES);
		return;
	}
	q = inquiry_new(x, prefix, limit);
	noted_look(x);
	item = roll_from(&x->noted->known, prefix.p, prefix.n);
	for (; item && q->found.count < limit && span_starts((struct span){item->text, item->n}, prefix); item = roll_next(item))
		if (session_may_look(x->core, s, (struct span){item->text, item->n}))
			inquiry_find(q, (struct span){item->text, item->n});
	/* The first names that a store has may be ones that this session may not look at. */
	buf_printf(&q->asked, "c%zu ", x->core->conf.rules ? (size_t)COMPLETE_MOST : limit);
	buf_append(&q->asked, prefix.p, prefix.n);
	inquiry_begin(x, s, q);
}

void serve_RECENT(struct commander *x, struct session *s)
{
	struct span prefix = request_has(&x->request, FIELD_PREFIX) ? x->request.field[FIELD_PREFIX].text : SPAN("");
	struct user *u = noted_user(x, s);
	size_t limit = USER_RECENTS;
	const struct roll_item *item;
	struct inquiry *q;

	if (!request_limit(x, s, USER_RECENTS, &limit) || !pendings_within_limit(x, s))
		return;
	q = inquiry_new(x, prefix, limit);
	noted_look(x);
	TAILQ_FOREACH_REVERSE(item, &u->recent.by_age, roll_items, by_age)
		inquiry_find(q, (struct span){item->text, item->n});
	buf_printf(&q->asked, "u");
	buf_append(&q->asked, u->name, u->n);
	inquiry_begin(x, s, q);
}

void serve_FORGET(struct commander *x, struct session *s)
{
	struct span name = x->request.word[0];
	struct user *u = noted_user(x, s);
	struct roll_item *item;
	struct inquiry *q;

	if (!pendings_within_limit(x, s))
		return;
	q = inquiry_new(x, name, 1);
	noted_look(x);
	item = roll_find(&u->recent, name.p, name.n);
	q->forgotten = item != NULL;
	if (item)
		roll_remove(&u->recent, item);
	buf_printf(&q->asked, "n");
	noted_put(&q->asked, 'f', (struct span){u->name, u->n}, name);
	inquiry_begin(x, s, q);
}
