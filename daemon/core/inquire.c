/* SPDX-License-Identifier: BSD-2-Clause */
/* See inquire.h. */
#include "daemon/core/inquire.h"

#include "daemon/base/mem.h"
#include "daemon/core/jobs.h"

_Static_assert(JOB_OWNER_MAX <= CARD_OWNER_MAX, "a card has room for the owner of the lock of a job");

/* A message that a store was asked to publish. */
struct word {
	TAILQ_ENTRY(word) next;
	struct name name; /* of the calls: they are about no lock */
	char nothing[1];  /* the text of that name */
	struct calls calls;
	size_t about_n; /* a question: the name that it is about, which follows; 0: an answer */
	char about[];
};

static void wake_at(struct commander *x, struct instant at)
{
	struct timer *timer = &x->strangers->timer;

	if (!timer_is_set(timer) || instant_before(at, timer->at))
		heap_set(&x->core->timers, timer, at);
}

/* Nothing is under way: no timer is left. */
static void calm_down(struct commander *x)
{
	if (x->strangers->words_n == 0 && x->strangers->held_n == 0)
		heap_cancel(&x->core->timers, &x->strangers->timer);
}

/* --- messages -------------------------------------------------------------------------------------------------------- */

/* One more of this kind in the present second. */
static bool may_say(struct commander *x, unsigned *count, unsigned most)
{
	struct strangers *t = x->strangers;

	if (!instant_before(x->core->now, t->second)) {
		t->second = instant_add(x->core->now, SEC);
		t->questions = t->answers = 0;
	}
	if (*count >= most || t->words_n >= WORDS_MOST)
		return false;
	++*count;
	return true;
}

static struct word *word_new(struct commander *x, struct span about)
{
	struct strangers *t = x->strangers;
	struct word *w = mem_alloc(sizeof(*w) + about.n);

	w->name.text = w->nothing;
	w->about_n = about.n;
	if (about.n > 0)
		memcpy(w->about, about.p, about.n);
	TAILQ_INSERT_TAIL(&t->words, w, next);
	t->words_n++;
	calls_open(&x->engine->calls, &w->calls, CALLS_OF_WORD, &w->name);
	return w;
}

/* letter: 'i', a question; 'I', a card. */
static void word_send(struct commander *x, unsigned node, struct span to, char letter, const struct card *c)
{
	struct word *w = word_new(x, letter == 'i' ? c->name : SPAN(""));
	struct buf text = {0};
	struct call *call;

	buf_printf(&text, "%c", letter);
	(letter == 'i' ? card_put_question : card_put)(&text, c);
	call = calls_send(&x->engine->calls, &w->calls, node, CALL_TELL);
	call->ticket = (struct span){arena_copy(&x->core->out->arena, to.p, to.n), to.n};
	call->value = (struct span){arena_copy(&x->core->out->arena, buf_begin(&text), buf_length(&text)), buf_length(&text)};
	buf_release(&text);
	wake_at(x, instant_add(x->core->now, x->core->conf.timeout_us));
}

static void word_end(struct commander *x, struct word *w)
{
	struct strangers *t = x->strangers;

	calls_close(&x->engine->calls, &w->calls);
	TAILQ_REMOVE(&t->words, w, next);
	t->words_n--;
	mem_free(w);
}

/* The next store that can be used, from this one on, in a circle; -1: there is none. */
static int usable_from(const struct commander *x, unsigned node)
{
	unsigned nodes = x->core->conf.nodes;

	for (unsigned i = 0; i < nodes; i++)
		if (member_usable(&x->engine->members.node[(node + i) % nodes]))
			return (int)((node + i) % nodes);
	return -1;
}

/* By another store than last time: it may be one over which nothing gets through. False: by none. */
static bool question_send(struct commander *x, struct stranger *g)
{
	struct card question = {.daemon = span_of(x->core->daemon_id), .name = {g->name, g->name_n}, .number = g->number};
	int node = g->turn < x->core->conf.nodes ? usable_from(x, g->node + 1) : -1;

	if (node < 0 || (g->turn > 0 && g->node == (unsigned)node) || !may_say(x, &x->strangers->questions, QUESTIONS_MOST))
		return false;
	g->turn++;
	g->node = (unsigned)node;
	g->asked_at = x->core->now;
	word_send(x, g->node, span_of(g->daemon), 'i', &question);
	return true;
}

/* --- who asks -------------------------------------------------------------------------------------------------------- */

static bool may_inquire(const struct commander *x, struct span name, const struct elsewhere *elsewhere)
{
	return x->core->conf.inquires && elsewhere->number > 0 && !elsewhere->reserved && !span_starts(name, SPAN(SLOT_PREFIX));
}

/* True: an answer may come. */
static bool inquire_about(struct commander *x, struct stranger *g, const struct elsewhere *elsewhere)
{
	bool same = stranger_is(g, elsewhere);
	int64_t since = instant_diff(x->core->now, g->asked_at);

	if (g->open && same && since <= x->core->conf.timeout_us)
		return true;
	if (since < (same ? INQUIRE_AGAIN_US : INQUIRE_OTHER_US))
		return false;
	if (same)
		g->silent |= g->open;
	else
		stranger_become(g, elsewhere);
	g->turn = 0;
	g->open = question_send(x, g);
	return g->open;
}

void inquire(struct commander *x, struct span name, const struct elsewhere *elsewhere)
{
	if (may_inquire(x, name, elsewhere))
		(void)inquire_about(x, stranger_use(strangers_here(x), name), elsewhere);
}

static int64_t held_back_us(const struct commander *x, bool refusal)
{
	int64_t us = refusal ? HELD_BACK_US + 4 * members_rtt_us(&x->engine->members) : SHOW_MOST_US;

	return us < x->core->conf.timeout_us ? us : x->core->conf.timeout_us;
}

static void hold_back(struct commander *x, const struct pending *like, int64_t us)
{
	struct strangers *t = x->strangers;
	struct pending *p = pool_get(&x->engine->table.pendings);

	*p = *like;
	p->held_until = instant_add(x->core->now, us);
	p->lock->name.refs++;
	TAILQ_INSERT_TAIL(&p->session->pendings, p, in_session);
	TAILQ_INSERT_TAIL(&t->held, p, in_lease);
	t->held_n++;
	wake_at(x, p->held_until);
}

bool inquire_holds_back(struct commander *x, const struct pending *p, bool refusal)
{
	struct span name = lock_name(p->lock);
	struct stranger *g;
	int64_t held_us;

	if (!may_inquire(x, name, &p->elsewhere))
		return false;
	g = stranger_use(strangers_here(x), name);
	if (!inquire_about(x, g, &p->elsewhere) || (refusal && g->silent) || x->strangers->held_n >= HELD_BACK_MOST ||
	    (refusal && stranger_card(x, name, &p->elsewhere, &held_us)))
		return false;
	hold_back(x, p, held_back_us(x, refusal));
	return true;
}

/* --- held back no longer --------------------------------------------------------------------------------------------- */

static void pending_is_due(struct strangers *t, struct pending *p)
{
	TAILQ_REMOVE(&t->held, p, in_lease);
	t->held_n--;
	TAILQ_INSERT_TAIL(&t->due, p, in_lease);
}

/* Those that wait for a card of the holder of this name. */
static void let_go(struct strangers *t, struct span name)
{
	struct pending *p, *next;

	for (p = TAILQ_FIRST(&t->held); p; p = next) {
		next = TAILQ_NEXT(p, in_lease);
		if (span_equal(lock_name(p->lock), name))
			pending_is_due(t, p);
	}
}

struct pending *inquire_next_due(struct commander *x)
{
	struct pending *p = x->strangers ? TAILQ_FIRST(&x->strangers->due) : NULL;

	if (p)
		TAILQ_REMOVE(&x->strangers->due, p, in_lease);
	return p;
}

void inquire_free_pending(struct commander *x, struct pending *p)
{
	struct lock *l = p->lock;

	l->name.refs--;
	pool_put(&x->engine->table.pendings, p);
	lock_drop_if_unused(&x->engine->table, l);
}

/* --- what comes ------------------------------------------------------------------------------------------------------ */

/* The hold of that value; NULL: there is none, or it is no lock. */
static const struct claim *holder_of_value(struct commander *x, const struct card *q)
{
	const struct lock *l = lock_find(&x->engine->table, q->name);

	if (!l || !l->holder || l->lease.limit > 0 || l->lease.value.number != (uint64_t)q->number)
		return NULL;
	return l->holder;
}

void inquire_asked(struct commander *x, unsigned node, struct span message)
{
	const struct claim *c;
	const struct session *s;
	struct card q, answer;
	int by = node < x->core->conf.nodes ? usable_from(x, node) : -1;

	if (by < 0 || !x->core->conf.inquires || !card_read_question(message, &q) || span_equal(q.daemon, span_of(x->core->daemon_id)))
		return;
	c = holder_of_value(x, &q);
	if (!c || !may_say(x, &strangers_here(x)->answers, ANSWERS_MOST))
		return;
	s = c->session->principal ? c->session->principal : c->session;
	answer = (struct card){
		.daemon = span_of(x->core->daemon_id),
		.name = q.name,
		.number = q.number,
		.held_ms = instant_diff(x->core->now, c->granted_at) / MSEC,
		.label = span_of(s->label ? s->label : ""),
		.peer = session_address(s),
		.pid = s->is_unix ? s->pid : -1,
		.uid = s->is_unix ? s->uid : -1,
		.owner = claim_owner(c),
		.note = claim_note(c),
	};
	word_send(x, (unsigned)by, q.daemon, 'I', &answer);
}

void inquire_told(struct commander *x, struct span message)
{
	struct stranger *g;

	if (!x->strangers || !stranger_keep(x->strangers, message, x->core->now, &g))
		return;
	let_go(x->strangers, (struct span){g->name, g->name_n});
	calm_down(x);
}

/* How many daemons have got the message: none, if the one that was asked does not listen at this store. */
static bool nobody_heard(const struct answer *a)
{
	return a->class != ANSWER_EXECUTED || a->code != 'T' || span_equal(a->found, SPAN("0"));
}

/* The store was asked to publish a question about this one. The next store is asked if this one has told nobody. */
static void question_is_out(struct commander *x, struct stranger *g, const struct answer *a)
{
	if (!g->open || g->node != a->node || !nobody_heard(a) || question_send(x, g))
		return;
	g->open = false;
	let_go(x->strangers, (struct span){g->name, g->name_n});
}

void inquire_answered(struct commander *x, const struct answer *a)
{
	struct calls *c = a->call < x->engine->calls.slots ? x->engine->calls.slot[a->call] : NULL;
	struct stranger *g;
	struct word *w;

	if (!c || c->owner != CALLS_OF_WORD)
		return;
	w = container_of(c, struct word, calls);
	g = w->about_n > 0 ? stranger_find(x->strangers, (struct span){w->about, w->about_n}) : NULL;
	word_end(x, w);
	if (g)
		question_is_out(x, g, a);
	calm_down(x);
}

void inquire_fired(struct commander *x)
{
	struct strangers *t = x->strangers;
	struct pending *p, *next;
	struct word *w;

	for (p = TAILQ_FIRST(&t->held); p; p = next) {
		next = TAILQ_NEXT(p, in_lease);
		if (instant_before(x->core->now, p->held_until))
			wake_at(x, p->held_until);
		else
			pending_is_due(t, p);
	}
	TAILQ_FOREACH(w, &t->words, next) {
		struct instant slow_at = calls_slow_at(&x->engine->calls, &w->calls);

		if (instant_before(x->core->now, slow_at))
			wake_at(x, slow_at);
		else
			calls_stall(&x->engine->calls, &w->calls);
	}
}

void inquire_free(struct commander *x)
{
	struct strangers *t = x->strangers;
	struct pending *p;

	if (!t)
		return;
	heap_cancel(&x->core->timers, &t->timer);
	while ((p = TAILQ_FIRST(&t->held)))
		pending_is_due(t, p);
	while ((p = inquire_next_due(x))) {
		if (p->session)
			TAILQ_REMOVE(&p->session->pendings, p, in_session);
		inquire_free_pending(x, p);
	}
	while (!TAILQ_EMPTY(&t->words))
		word_end(x, TAILQ_FIRST(&t->words));
	strangers_clear(t);
	mem_free(t);
	x->strangers = NULL;
}

