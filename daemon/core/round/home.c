/* SPDX-License-Identifier: BSD-2-Clause */
/* See home.h. */
#include "daemon/core/round/home.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/event/event.h"
#include "daemon/core/member/membership.h"

#include <stdarg.h>
#include <stdio.h>

/* The seeds never change: all daemons must find the same homes. */
static uint64_t rendezvous_seed(enum home_of of)
{
	switch (of) {
	case HOME_OF_RATE:
		return 1;
	case HOME_OF_QUEUE:
		return 2;
	case HOME_OF_NONE: /* its store is known */
		break;
	}
	return 0;
}

static uint64_t rendezvous_weight(enum home_of of, struct span node, struct span name)
{
	static const uint64_t fixed[2] = {0, 0};
	const uint64_t key[2] = {siphash(fixed, node.p, node.n), rendezvous_seed(of)};

	return siphash(key, name.p, name.n);
}

/* The one of these with the largest weight. */
static unsigned heaviest(const uint64_t *weight, unsigned nodes, struct nodeset but)
{
	unsigned first = nodes;

	for (unsigned i = 0; i < nodes; i++)
		if (!nodeset_has(but, i) && (first == nodes || weight[i] > weight[first]))
			first = i;
	return first;
}

unsigned rendezvous_node(const struct core *core, enum home_of of, struct span name, unsigned place)
{
	struct nodeset before = NODESET_NONE;
	uint64_t weight[NODES_MAX];
	unsigned node;

	for (unsigned i = 0; i < core->conf.nodes; i++)
		weight[i] = rendezvous_weight(of, span_of(core_calls(core, i)), name);
	for (node = heaviest(weight, core->conf.nodes, before); place > 0; place--) {
		nodeset_add(&before, node);
		node = heaviest(weight, core->conf.nodes, before);
	}
	return node;
}

/* Sends questions, and knows nothing of their contents. A call that was given up is still answered: its question lives until then. */

struct home_question *home_question_new(struct engine *e, enum home_of of, struct span name, struct origin *o)
{
	struct home_question *q = mem_alloc(sizeof(*q));

	q->of = of;
	q->origin = o;
	origin_question_begin(o);
	q->name.text = mem_copy(name.p, name.n);
	q->name.n = (uint16_t)name.n;
	q->timer.kind = TIMER_HOME;
	buf_init(&q->words);
	calls_open(&e->calls, &q->calls, CALLS_OF_HOME, &q->name);
	return q;
}

static void home_question_end(struct engine *e, struct home_question *q)
{
	heap_cancel(&e->core->timers, &q->timer);
	calls_close(&e->calls, &q->calls);
	buf_release(&q->words);
	origin_question_end(q->origin);
	mem_free(q->name.text);
	mem_free(q);
}

void home_question_free(struct engine *e, struct home_question *q)
{
	q->left = true;
	q->pending = NULL;
	q->text = (struct span){0};
	if (nodeset_any(q->calls.open))
		TAILQ_INSERT_TAIL(&e->homes.asked, q, in_list);
	else
		home_question_end(e, q);
}

struct home_question *home_next_outcome(struct engine *e)
{
	struct home_question *q = TAILQ_FIRST(&e->homes.finished);

	if (q)
		TAILQ_REMOVE(&e->homes.finished, q, in_list);
	return q;
}

#define TEXT_MAX 512

static struct span __attribute__((format(printf, 2, 3))) home_text(struct core *core, const char *format, ...)
{
	char *text = arena_reserve(&core->out->arena, TEXT_MAX);
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(text, TEXT_MAX, format, list);
	va_end(list);
	n = n < 0 ? 0 : n < TEXT_MAX ? n : TEXT_MAX - 1;
	arena_commit(&core->out->arena, (size_t)n);
	return (struct span){text, (size_t)n};
}

/* Pause before the name of a store is asked for again, after an answer that blocks questions, or after none. */
#define NAME_AGAIN_US SEC

/* A store that had another name and has none now has forgotten it: the daemons that gave it will give it again. */
static void name_learned(struct engine *e, unsigned node, enum home_outcome outcome, struct span name)
{
	bool was_other = e->homes.name[node].is == NAME_OTHER, answered = outcome == HOME_ANSWERED;
	bool other = answered && name.n > 0 ? !span_equal(name, span_of(core_calls(e->core, node))) : was_other;

	e->homes.name[node].at = e->core->now;
	e->homes.name[node].markers = e->members.node[node].markers;
	e->homes.name[node].is = other ? NAME_OTHER : answered ? NAME_SAME : NAME_UNKNOWN;
}

/* The question is not sent any more. */
static void home_finish(struct engine *e, struct home_question *q, enum home_outcome outcome, struct span text)
{
	if (q->of == HOME_OF_NONE) {
		name_learned(e, q->node, outcome, text);
		home_question_free(e, q);
		return;
	}
	q->outcome = outcome;
	q->text = text;
	heap_cancel(&e->core->timers, &q->timer);
	TAILQ_INSERT_TAIL(&e->homes.finished, q, in_list);
}

static bool home_may_answer(const struct member *m, const struct home_question *q)
{
	if (!m->connected || m->stalled || m->state == MEMBER_REFUSED || m->state == MEMBER_DOWN || (q->denied && q->denied == m->marker))
		return false;
	return q->joined ? m->state == MEMBER_JOINED : m->ours && m->marker && *m->marker;
}

/* The store may soon be ready: it was not reached or probed yet, or its marker has changed. */
static bool home_is_awaited(const struct member *m)
{
	return m->state == MEMBER_DOWN ? !m->reason[0] : m->connected && !m->stalled && m->asked != ASKED_NOTHING;
}

static void home_refuse(struct engine *e, struct home_question *q)
{
	const struct member *m = &e->members.node[q->node];
	bool denied = q->denied && q->denied == m->marker && m->connected && !m->stalled;
	const char *why = m->stalled ? "slow" : denied ? "of another configuration now" : home_may_answer(m, q) ? "busy" : member_state_word(m->state);

	home_finish(e, q, HOME_REFUSED, home_text(e->core, "%s is %s%s%s", e->core->conf.label[q->node], why, m->reason[0] ? ": " : "", m->reason));
}

static void home_send(struct engine *e, struct home_question *q)
{
	struct member *m = &e->members.node[q->node];
	struct call *call = calls_send(&e->calls, &q->calls, q->node, CALL_HOME);

	q->marker = m->marker;
	if (!q->joined)
		call->marker = span_of(m->marker);
	call->value = (struct span){buf_begin(&q->words), buf_length(&q->words)};
	call->ticket = span_of(core_calls(e->core, q->node));
	TAILQ_INSERT_TAIL(&e->homes.asked, q, in_list);
	heap_set(&e->core->timers, &q->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* Asks a store for its name. give: if it has none, it takes the name that this daemon has for it. */
static void name_ask(struct engine *e, unsigned node, bool give)
{
	struct home_question *q = home_question_new(e, HOME_OF_NONE, SPAN(""), NULL);

	q->node = node;
	netstring_put(&q->words, SPAN("n"));
	netstring_put_int(&q->words, give);
	e->homes.name[node].is = e->homes.name[node].is == NAME_OTHER ? NAME_OTHER : NAME_ASKED;
	e->homes.name[node].at = e->core->now;
	home_send(e, q);
}

/* The first store that has another name; -1: none, as far as is known. */
static int names_other(const struct engine *e)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (e->homes.name[i].is == NAME_OTHER)
			return (int)i;
	return -1;
}

/* Asks the stores in reach whose names are not known and, now and then, those with other names. True: there is nothing to wait for. */
static bool names_are_known(struct engine *e)
{
	struct home_question probe = {.joined = false};
	bool known = true, give = names_other(e) < 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		struct instant again = instant_add(e->homes.name[i].at, NAME_AGAIN_US);
		bool asked = e->homes.name[i].is == NAME_ASKED;

		if (e->homes.name[i].is == NAME_SAME && e->homes.name[i].markers == e->members.node[i].markers)
			continue;
		if (e->homes.name[i].is != NAME_SAME && !asked && instant_before(e->core->now, again))
			continue;
		if (!asked && home_may_answer(&e->members.node[i], &probe))
			name_ask(e, i, give);
		known &= e->homes.name[i].is != NAME_ASKED;
	}
	return known;
}

static void home_refuse_misnamed(struct engine *e, struct home_question *q)
{
	q->misnamed = true;
	home_finish(e, q, HOME_REFUSED,
	              home_text(e->core, "%s goes by another name among the other daemons: redis.nodes must call it so here, too",
	                        e->core->conf.label[names_other(e)]));
}

/*
 * A question needs one store, and a round needs a quorum with room at the same moment: either could block the other for ever. So while rounds wait, the last
 * place in the window of a store is reserved for them. For each round that is admitted, one question may take that place, or one that a round has overdrawn.
 */
static bool home_has_room(struct engine *e, unsigned node)
{
	const struct flow *f = &e->members.node[node].flow;

	if (admission_is_idle(&e->admission))
		return flow_has_room(f);
	if (f->open + 1 < f->window)
		return true;
	if (flow_is_overdrawn(f) || e->homes.turn[node] == e->admitted)
		return false;
	e->homes.turn[node] = e->admitted;
	return true;
}

enum trial { TRIAL_OVER, TRIAL_WAITS, TRIAL_NO_ROOM, TRIAL_NAMES_UNKNOWN };

/* Sends or refuses it, unless it has to wait. Before, it is neither sent nor in `told`. */
static enum trial home_attempt(struct engine *e, struct home_question *q)
{
	const struct member *m = &e->members.node[q->node];
	bool known = names_are_known(e), may = home_may_answer(m, q);

	if (names_other(e) >= 0) {
		home_refuse_misnamed(e, q);
	} else if (known && may && home_has_room(e, q->node)) {
		home_send(e, q);
	} else if ((!known || may || home_is_awaited(m)) && instant_before(e->core->now, q->until)) {
		return !known ? TRIAL_NAMES_UNKNOWN : may ? TRIAL_NO_ROOM : TRIAL_WAITS;
	} else {
		home_refuse(e, q);
	}
	return TRIAL_OVER;
}

static unsigned home_line(const struct home_question *q)
{
	return q->urgent ? 0 : q->joined ? 1 : 2;
}

static void home_wait(struct engine *e, struct home_question *q)
{
	turn_wait(&e->homes.waiting[q->node][home_line(q)], &q->turn, q->origin);
	e->homes.waiting_n++;
}

static void home_wait_ends(struct engine *e, struct home_question *q)
{
	turn_leave(&q->turn);
	e->homes.waiting_n--;
}

#define TRIED_A_STEP 128

/* False: the rest waits for the next step. In the last step nothing waits. */
static bool home_may_try(struct engine *e)
{
	if (e->stopping || e->homes.tried++ < core_portion(e->core, TRIED_A_STEP))
		return true;
	heap_set(&e->core->timers, &e->back.timer, e->core->now);
	return false;
}

/* It does not wait yet. */
static void home_try(struct engine *e, struct home_question *q)
{
	if (home_may_try(e) && home_attempt(e, q) == TRIAL_OVER)
		return;
	home_wait(e, q);
	heap_set(&e->core->timers, &q->timer, q->until);
}

void home_ask(struct engine *e, struct home_question *q, unsigned place)
{
	q->outcome = HOME_OPEN;
	q->text = (struct span){0};
	q->place = place;
	q->denied = NULL;
	q->from_store = false;
	q->node = rendezvous_node(e->core, q->of, name_text(&q->name), place);
	if (place == 0 || q->until.us == 0) /* a request that moves on to the next home no longer waits for this one */
		q->until = instant_add(e->core->now, core_soon_us(e->core) + e->core->conf.timeout_us);
	home_try(e, q);
}

/* Leases depend on the urgent questions, which would come too late in a flood of others. The other two lines alternate. NULL: none is left. */
static struct home_question *home_first(struct engine *e, unsigned node, const bool is_held_up[HOME_LINES])
{
	const unsigned lines[HOME_LINES] = {0, e->homes.odd[node] ? 2 : 1, e->homes.odd[node] ? 1 : 2};

	for (unsigned i = 0; i < HOME_LINES; i++)
		if (!is_held_up[lines[i]] && !turns_none(&e->homes.waiting[node][lines[i]]))
			return container_of(turns_first(&e->homes.waiting[node][lines[i]]), struct home_question, turn);
	return NULL;
}

/* False: nothing more can be tried in this step. If the first in a line has to wait, so do those after it. */
static bool home_send_to_store(struct engine *e, unsigned node)
{
	bool is_held_up[HOME_LINES] = {false};
	struct home_question *q;
	enum trial trial;

	while ((q = home_first(e, node, is_held_up))) {
		unsigned line = home_line(q);

		if (!home_may_try(e))
			return false;
		trial = home_attempt(e, q);
		if (trial == TRIAL_OVER) {
			turn_taken(&q->turn);
			home_wait_ends(e, q);
			e->homes.odd[node] = line > 0 ? line == 1 : e->homes.odd[node];
			continue;
		}
		is_held_up[line] = true;
		if (trial == TRIAL_NAMES_UNKNOWN)
			return false;
		if (trial == TRIAL_NO_ROOM)
			return true;
	}
	return true;
}

void home_send_waiting(struct engine *e)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (!home_send_to_store(e, i))
			return;
}

static void home_note_answer(struct engine *e, struct home_question *q, const struct answer *a)
{
	struct member *m = &e->members.node[q->node];

	q->code = a->code;
	if (a->code == 'Q' && q->of == HOME_OF_NONE) {
		home_finish(e, q, HOME_REFUSED, SPAN(""));
	} else if (a->code == 'Q') {
		q->denied = q->marker;
		if (m->asked == ASKED_NOTHING && m->connected)
			member_probe(&e->members, m);
		home_try(e, q);
	} else if (a->code == 'N' && q->of != HOME_OF_NONE) {
		name_learned(e, q->node, HOME_ANSWERED, a->found);
		if (e->homes.name[q->node].is == NAME_OTHER)
			home_try(e, q);
		else /* asking again at once would never end */
			home_finish(e, q, HOME_REFUSED, home_text(e->core, "%s does not say what it is called", e->core->conf.label[q->node]));
	} else {
		home_finish(e, q, HOME_ANSWERED, a->found);
	}
}

/* An error from a server will be the same the next time. */
static void home_fail(struct engine *e, struct home_question *q, const struct answer *a)
{
	q->from_store = !a->unsent && a->defect != DEFECT_NONE;
	home_finish(e, q, a->class == ANSWER_REFUSED ? HOME_REFUSED : HOME_UNKNOWN, a->text);
}

void home_answered(struct engine *e, struct calls *c, const struct answer *a)
{
	struct home_question *q = container_of(c, struct home_question, calls);

	if (q->left) {
		if (!nodeset_any(c->open)) {
			TAILQ_REMOVE(&e->homes.asked, q, in_list);
			home_question_end(e, q);
		}
		return;
	}
	if (q->outcome != HOME_OPEN || a->node != q->node)
		return; /* it was given up earlier */
	TAILQ_REMOVE(&e->homes.asked, q, in_list);
	heap_cancel(&e->core->timers, &q->timer);
	if (a->class == ANSWER_EXECUTED)
		home_note_answer(e, q, a);
	else
		home_fail(e, q, a);
}

void home_fired(struct engine *e, struct timer *t)
{
	struct home_question *q = container_of(t, struct home_question, timer);

	if (nodeset_has(q->calls.open, q->node)) {
		TAILQ_REMOVE(&e->homes.asked, q, in_list);
		calls_stall(&e->calls, &q->calls);
		home_finish(e, q, HOME_UNKNOWN, SPAN("no answer in time"));
	} else {
		home_wait_ends(e, q);
		home_refuse(e, q);
	}
}

static void home_drop(struct engine *e, struct home_question *q)
{
	if (q->pending)
		pending_free(&e->table.pendings, q->pending);
	q->calls.open = NODESET_NONE;
	home_question_end(e, q);
}

static void homes_free(struct engine *e, struct home_questions *list)
{
	struct home_question *q;

	while ((q = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, q, in_list);
		home_drop(e, q);
	}
}

static void homes_free_waiting(struct engine *e, struct turns *line)
{
	struct home_question *q;

	while (!turns_none(line)) {
		q = container_of(turns_first(line), struct home_question, turn);
		home_wait_ends(e, q);
		home_drop(e, q);
	}
}

void home_release(struct engine *e)
{
	homes_free(e, &e->homes.asked);
	for (unsigned i = 0; i < NODES_MAX; i++)
		for (unsigned k = 0; k < HOME_LINES; k++)
			homes_free_waiting(e, &e->homes.waiting[i][k]);
	homes_free(e, &e->homes.finished);
}
