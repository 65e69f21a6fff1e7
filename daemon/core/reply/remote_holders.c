/* SPDX-License-Identifier: BSD-2-Clause */
/* See remote_holders.h. */
#include "daemon/core/reply/remote_holders.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/core/session/jobs.h"

/* allocates them if need be */
static struct remote_holders *remote_holders_here(struct request_context *x)
{
	struct remote_holders *t = x->remote_holders;

	if (t)
		return t;
	t = x->remote_holders = mem_alloc(sizeof(*t));
	t->timer.kind = TIMER_ASK_DAEMON;
	t->key = x->engine->table.map.key;
	TAILQ_INIT(&t->table);
	TAILQ_INIT(&t->messages);
	TAILQ_INIT(&t->held);
	TAILQ_INIT(&t->due);
	return t;
}

/* NULL: nothing is known about it. */
static struct remote_holder *remote_holder_find(const struct remote_holders *t, struct span name)
{
	uint64_t hash = siphash(t->key, name.p, name.n);
	struct remote_holder *h;

	TAILQ_FOREACH(h, &t->table, in_table) {
		if (h->hash == hash && span_equal((struct span){h->name, h->name_n}, name))
			return h;
	}
	return NULL;
}

static void forget_card(struct remote_holder *h)
{
	mem_free(h->message);
	h->message = NULL;
}

static void remote_holder_free(struct remote_holders *t, struct remote_holder *h)
{
	TAILQ_REMOVE(&t->table, h, in_table);
	t->count--;
	forget_card(h);
	mem_free(h);
}

static void remote_holders_clear(struct remote_holders *t)
{
	while (!TAILQ_EMPTY(&t->table))
		remote_holder_free(t, TAILQ_FIRST(&t->table));
}

static struct remote_holder *remote_holder_new(struct remote_holders *t, struct span name)
{
	struct remote_holder *h = mem_alloc(sizeof(*h) + name.n);

	if (t->count == REMOTE_HOLDERS_MOST)
		remote_holder_free(t, TAILQ_LAST(&t->table, remote_holder_list));
	h->hash = siphash(t->key, name.p, name.n);
	h->asked_at = h->answer_at = INSTANT_PAST;
	h->name_n = name.n;
	memcpy(h->name, name.p, name.n);
	t->count++;
	return h;
}

/* The same, but creates it if need be, in place of the one that was unused for longest. It becomes the most recently used. */
static struct remote_holder *remote_holder_use(struct remote_holders *t, struct span name)
{
	struct remote_holder *h = remote_holder_find(t, name);

	if (h)
		TAILQ_REMOVE(&t->table, h, in_table);
	else
		h = remote_holder_new(t, name);
	TAILQ_INSERT_HEAD(&t->table, h, in_table);
	return h;
}

static bool remote_holder_is(const struct remote_holder *h, const struct elsewhere *elsewhere)
{
	return h->number == elsewhere->number && strcmp(h->daemon, elsewhere->daemon) == 0;
}

/* From now on it describes this value. Forgets what was reported about another. */
static void remote_holder_become(struct remote_holder *h, const struct elsewhere *elsewhere)
{
	core_keep(h->daemon, sizeof(h->daemon), span_of(elsewhere->daemon));
	h->number = elsewhere->number;
	h->open = false;
	forget_card(h);
}

/*
 * Keeps the card in this message if it is about this value. False: it is not, or is invalid, or was not asked for. Only the daemon that was asked counts, and
 * only for this question: an answer to an earlier one may be late, and anybody may send one.
 */
static bool remote_holder_keep_card(struct remote_holders *t, struct span message, struct instant now, struct remote_holder **ret_holder)
{
	struct remote_holder *h;
	struct holder_text c;

	if (!holder_text_read(message, &c))
		return false;
	h = remote_holder_find(t, c.name);
	if (!h || !h->open || h->number != c.number || !span_equal(span_of(h->daemon), c.daemon) || instant_diff(now, h->asked_at) > CARD_KEPT_US)
		return false;
	forget_card(h);
	h->message = mem_copy(message.p, message.n);
	(void)holder_text_read((struct span){h->message, message.n}, &h->card);
	h->answer_at = now;
	h->open = false;
	*ret_holder = h;
	return true;
}

const struct holder_text *remote_holder_card(const struct request_context *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us)
{
	const struct remote_holder *h = x->remote_holders && elsewhere->number > 0 ? remote_holder_find(x->remote_holders, name) : NULL;

	if (!h || !h->message || !remote_holder_is(h, elsewhere) || instant_diff(x->core->now, h->answer_at) > CARD_KEPT_US)
		return NULL;
	*ret_us = h->card.held_ms * MSEC + instant_diff(x->core->now, h->answer_at);
	return &h->card;
}

/* --- fields ---------------------------------------------------------------------------------------------------------- */

void reply_remote_client(struct reply *r, const struct holder_text *c)
{
	if (c->label.n > 0)
		reply_text(r, "name", c->label);
	if (c->peer.n > 0)
		reply_text(r, "peer", c->peer);
	if (c->pid >= 0) {
		reply_int(r, "pid", c->pid);
		reply_int(r, "uid", c->uid);
	}
}

void reply_remote_texts(struct reply *r, const struct holder_text *c)
{
	if (c->owner.n > 0)
		reply_text(r, "owner", c->owner);
	reply_remark(r, c->remark);
}

void reply_remote_who(struct reply *r, const struct holder_text *c)
{
	char who[CARD_WHO_MAX];
	size_t n = holder_text_who(c, who);

	if (n > 0)
		reply_text(r, "who", (struct span){who, n});
}

_Static_assert(JOB_OWNER_MAX <= CARD_OWNER_MAX, "a card has room for the owner of the lock of a job");

/* A message that a store was asked to publish. */
struct message {
	TAILQ_ENTRY(message) next;
	struct name name; /* for the calls, which are about no lock */
	char nothing[1];  /* the text of `name` */
	struct calls calls;
	size_t about_n; /* a question: the length of the name that it is about, which follows; 0: an answer */
	char about[];
};

static void wake_at(struct request_context *x, struct instant at)
{
	struct timer *timer = &x->remote_holders->timer;

	if (!timer_is_set(timer) || instant_before(at, timer->at))
		heap_set(&x->core->timers, timer, at);
}

/* If nothing is under way, no timer is left. */
static void stop_timer_if_idle(struct request_context *x)
{
	if (x->remote_holders->messages_n == 0 && x->remote_holders->held_n == 0)
		heap_cancel(&x->core->timers, &x->remote_holders->timer);
}

/* --- messages -------------------------------------------------------------------------------------------------------- */

/* Counts one more of this kind in the present second. */
static bool may_send(struct request_context *x, unsigned *count, unsigned most)
{
	struct remote_holders *t = x->remote_holders;

	if (!instant_before(x->core->now, t->second)) {
		t->second = instant_add(x->core->now, SEC);
		t->questions = t->answers = 0;
	}
	if (*count >= most || t->messages_n >= MESSAGES_MOST)
		return false;
	++*count;
	return true;
}

static struct message *message_new(struct request_context *x, struct span about)
{
	struct remote_holders *t = x->remote_holders;
	struct message *m = mem_alloc(sizeof(*m) + about.n);

	m->name.text = m->nothing;
	m->about_n = about.n;
	if (about.n > 0)
		memcpy(m->about, about.p, about.n);
	TAILQ_INSERT_TAIL(&t->messages, m, next);
	t->messages_n++;
	calls_open(&x->engine->calls, &m->calls, CALLS_OF_MESSAGE, &m->name);
	return m;
}

/* letter: 'i' for a question; 'I' for a card. */
static void message_send(struct request_context *x, unsigned node, struct span to, char letter, const struct holder_text *c)
{
	struct message *m = message_new(x, letter == 'i' ? c->name : SPAN(""));
	struct buf text = {0};
	struct call *call;

	buf_printf(&text, "%c", letter);
	(letter == 'i' ? holder_text_put_question : holder_text_put)(&text, c);
	call = calls_send(&x->engine->calls, &m->calls, node, CALL_PUBLISH);
	call->ticket = (struct span){arena_copy(&x->core->out->arena, to.p, to.n), to.n};
	call->value = (struct span){arena_copy(&x->core->out->arena, buf_begin(&text), buf_length(&text)), buf_length(&text)};
	buf_release(&text);
	wake_at(x, instant_add(x->core->now, x->core->conf.timeout_us));
}

static void message_end(struct request_context *x, struct message *m)
{
	struct remote_holders *t = x->remote_holders;

	calls_close(&x->engine->calls, &m->calls);
	TAILQ_REMOVE(&t->messages, m, next);
	t->messages_n--;
	mem_free(m);
}

/* Returns the next usable store, from this one on, in a circle; -1: there is none. */
static int usable_from(const struct request_context *x, unsigned node)
{
	unsigned nodes = x->core->conf.nodes;

	for (unsigned i = 0; i < nodes; i++)
		if (member_usable(&x->engine->members.node[(node + i) % nodes]))
			return (int)((node + i) % nodes);
	return -1;
}

/* Asks another store than last time, because that one may not reach the other daemon. False: there is none to ask. */
static bool question_send(struct request_context *x, struct remote_holder *h)
{
	struct holder_text question = {.daemon = span_of(x->core->daemon_id), .name = {h->name, h->name_n}, .number = h->number};
	int node = h->stores_asked < x->core->conf.nodes ? usable_from(x, h->node + 1) : -1;

	if (node < 0 || (h->stores_asked > 0 && h->node == (unsigned)node) || !may_send(x, &x->remote_holders->questions, QUESTIONS_MOST))
		return false;
	h->stores_asked++;
	h->node = (unsigned)node;
	h->asked_at = x->core->now;
	message_send(x, h->node, span_of(h->daemon), 'i', &question);
	return true;
}

/* --- asking -------------------------------------------------------------------------------------------------------- */

static bool may_ask(const struct request_context *x, struct span name, const struct elsewhere *elsewhere)
{
	return x->core->conf.asks_daemons && elsewhere->number > 0 && !elsewhere->reserved && !span_starts(name, SPAN(SLOT_PREFIX));
}

/* True: an answer may come. */
static bool ask_about(struct request_context *x, struct remote_holder *h, const struct elsewhere *elsewhere)
{
	int64_t since = instant_diff(x->core->now, h->asked_at);

	if (!remote_holder_is(h, elsewhere))
		remote_holder_become(h, elsewhere);
	else if (h->open && since <= x->core->conf.timeout_us)
		return true;
	else if (since < ASK_AGAIN_US)
		return false;
	h->stores_asked = 0;
	h->open = question_send(x, h);
	return h->open;
}

static void hold_back(struct request_context *x, const struct pending *like)
{
	int64_t us = HELD_BACK_US < x->core->conf.timeout_us ? HELD_BACK_US : x->core->conf.timeout_us;
	struct remote_holders *t = x->remote_holders;
	struct pending *p = pool_get(&x->engine->table.pendings);

	*p = *like;
	origin_asks(p->origin);
	p->held_until = instant_add(x->core->now, us);
	p->lock->name.refs++;
	TAILQ_INSERT_TAIL(&p->session->pendings, p, in_session);
	TAILQ_INSERT_TAIL(&t->held, p, in_lease);
	t->held_n++;
	wake_at(x, p->held_until);
}

bool ask_daemon(struct request_context *x, const struct pending *p)
{
	struct span name = lock_name(p->lock);

	if (!may_ask(x, name, &p->elsewhere) || !ask_about(x, remote_holder_use(remote_holders_here(x), name), &p->elsewhere) ||
	    x->remote_holders->held_n >= HELD_BACK_MOST)
		return false;
	hold_back(x, p);
	return true;
}

/* --- no longer held back --------------------------------------------------------------------------------------------- */

static void pending_is_due(struct remote_holders *t, struct pending *p)
{
	TAILQ_REMOVE(&t->held, p, in_lease);
	t->held_n--;
	TAILQ_INSERT_TAIL(&t->due, p, in_lease);
}

/* The SHOWs that wait for a card of the holder of this name can be answered. */
static void let_shows_go_on(struct remote_holders *t, struct span name)
{
	struct pending *p, *next;

	for (p = TAILQ_FIRST(&t->held); p; p = next) {
		next = TAILQ_NEXT(p, in_lease);
		if (span_equal(lock_name(p->lock), name))
			pending_is_due(t, p);
	}
}

struct pending *ask_daemon_next_due(struct request_context *x)
{
	struct pending *p = x->remote_holders ? TAILQ_FIRST(&x->remote_holders->due) : NULL;

	if (p)
		TAILQ_REMOVE(&x->remote_holders->due, p, in_lease);
	return p;
}

void ask_daemon_free_pending(struct request_context *x, struct pending *p)
{
	struct lock *l = p->lock;

	l->name.refs--;
	pending_free(&x->engine->table.pendings, p);
	lock_drop_if_unused(&x->engine->table, l);
}

/* --- messages of others --------------------------------------------------------------------------------------------- */

/* Returns the hold of that value; NULL: there is none, or it is no lock. */
static const struct claim *holder_of_value(struct request_context *x, const struct holder_text *q)
{
	const struct lock *l = lock_find(&x->engine->table, q->name);

	if (!l || !l->holder || l->lease.limit > 0 || l->lease.value.number != (uint64_t)q->number)
		return NULL;
	return l->holder;
}

void ask_daemon_question(struct request_context *x, unsigned node, struct span message)
{
	const struct claim *c;
	const struct session *s;
	struct holder_text q, answer;
	int by = node < x->core->conf.nodes ? usable_from(x, node) : -1;

	if (by < 0 || !x->core->conf.asks_daemons || !holder_text_read_question(message, &q) || span_equal(q.daemon, span_of(x->core->daemon_id)))
		return;
	c = holder_of_value(x, &q);
	if (!c || !may_send(x, &remote_holders_here(x)->answers, ANSWERS_MOST))
		return;
	s = c->session->principal ? c->session->principal : c->session;
	answer = (struct holder_text){
		.daemon = span_of(x->core->daemon_id),
		.name = q.name,
		.number = q.number,
		.held_ms = instant_diff(x->core->now, c->granted_at) / MSEC,
		.label = span_of(s->label ? s->label : ""),
		.peer = session_address(s),
		.pid = s->is_unix ? s->pid : -1,
		.uid = s->is_unix ? s->uid : -1,
		.owner = claim_owner(c),
		.remark = claim_remark(c),
	};
	message_send(x, (unsigned)by, q.daemon, 'I', &answer);
}

void ask_daemon_card(struct request_context *x, struct span message)
{
	struct remote_holder *h;

	if (!x->remote_holders || !remote_holder_keep_card(x->remote_holders, message, x->core->now, &h))
		return;
	let_shows_go_on(x->remote_holders, (struct span){h->name, h->name_n});
	stop_timer_if_idle(x);
}

/* The store reports how many daemons got the message. None: the daemon that was asked is not subscribed at this store. */
static bool nobody_received(const struct answer *a)
{
	return a->class != ANSWER_EXECUTED || a->code != 'T' || span_equal(a->found, SPAN("0"));
}

/* A store has answered the request to publish a question about this holder. If it reached nobody, asks the next store. */
static void question_was_published(struct request_context *x, struct remote_holder *h, const struct answer *a)
{
	if (!h->open || h->node != a->node || !nobody_received(a) || question_send(x, h))
		return;
	h->open = false;
	let_shows_go_on(x->remote_holders, (struct span){h->name, h->name_n});
}

void ask_daemon_answered(struct request_context *x, const struct answer *a)
{
	struct calls *c = a->call < x->engine->calls.slots ? x->engine->calls.slot[a->call] : NULL;
	struct remote_holder *h;
	struct message *m;

	if (!c || c->owner != CALLS_OF_MESSAGE)
		return;
	m = container_of(c, struct message, calls);
	h = m->about_n > 0 ? remote_holder_find(x->remote_holders, (struct span){m->about, m->about_n}) : NULL;
	message_end(x, m);
	if (h)
		question_was_published(x, h, a);
	stop_timer_if_idle(x);
}

void ask_daemon_fired(struct request_context *x)
{
	struct remote_holders *t = x->remote_holders;
	struct pending *p, *next;
	struct message *m;

	for (p = TAILQ_FIRST(&t->held); p; p = next) {
		next = TAILQ_NEXT(p, in_lease);
		if (instant_before(x->core->now, p->held_until))
			wake_at(x, p->held_until);
		else
			pending_is_due(t, p);
	}
	TAILQ_FOREACH(m, &t->messages, next) {
		struct instant slow_at = calls_slow_at(&x->engine->calls, &m->calls);

		if (instant_before(x->core->now, slow_at))
			wake_at(x, slow_at);
		else
			calls_stall(&x->engine->calls, &m->calls);
	}
}

void ask_daemon_free(struct request_context *x)
{
	struct remote_holders *t = x->remote_holders;
	struct pending *p;

	if (!t)
		return;
	heap_cancel(&x->core->timers, &t->timer);
	while ((p = TAILQ_FIRST(&t->held)))
		pending_is_due(t, p);
	while ((p = ask_daemon_next_due(x))) {
		if (p->session)
			TAILQ_REMOVE(&p->session->pendings, p, in_session);
		ask_daemon_free_pending(x, p);
	}
	while (!TAILQ_EMPTY(&t->messages))
		message_end(x, TAILQ_FIRST(&t->messages));
	remote_holders_clear(t);
	mem_free(t);
	x->remote_holders = NULL;
}
