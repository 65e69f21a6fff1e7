/* SPDX-License-Identifier: BSD-2-Clause */
/* See rate.h. */
#include "daemon/core/rate/rate.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"

#include <inttypes.h>

void stored_put_terms(const struct request_context *x, const struct session *s, struct buf *words)
{
	int64_t all = (int64_t)x->core->conf.limits.stored;
	char peer[PEER_MAX];

	netstring_put(words, (struct span){peer, session_origin(x->core, s, peer)});
	netstring_put_int(words, all);
	netstring_put_int(words, session_is_owner(x->core, s) ? 0 : all / 2);
}

void stored_send_full(struct request_context *x, struct session *s, struct span tag, struct span word)
{
	uint64_t all = x->core->conf.limits.stored;
	char peer[PEER_MAX];

	if (span_equal(word, SPAN("p")))
		send_error(x, s, tag, ERROR_LIMIT,
		           "the jobs and rate limits of clients of %.*s may take at most %" PRIu64 " bytes at their store, half of limits.stored: "
		           "jobs that are done or dropped make room, and rate limits that are over",
		           (int)session_origin(x->core, s, peer), peer, all / 2);
	else
		send_error(x, s, tag, ERROR_LIMIT,
		           "the jobs and rate limits of all clients may take at most %" PRIu64 " bytes at their store (limits.stored): "
		           "jobs that are done or dropped make room, and rate limits that are over",
		           all);
}

static bool names_refuse(struct request_context *x, struct session *s, const char *whose, const char *what, uint64_t most, const char *advice)
{
	send_error(x, s, x->request.tag, ERROR_LIMIT, "the names that %s %s may take at most %" PRIu64 " bytes at a store (limits.stored): %s",
	           whose, what, most, advice);
	return false;
}

bool kept_has_room(struct request_context *x, struct session *s, uint64_t bytes)
{
	static const char what[] = "keep or have left with a delay", advice[] = "ask without keep= or delay=, or later";
	struct kept_names *k = &x->engine->kept;
	uint64_t most = x->core->conf.limits.stored;

	if (most == 0)
		return true;
	if (!session_is_owner(x->core, s) && kept_bytes_count(kept_of_peer(k, s->origin), x->core->now) + bytes > most / NAMES_SHARE)
		return names_refuse(x, s, "clients of one peer", what, most / NAMES_SHARE, advice);
	return kept_bytes_count(&k->all, x->core->now) + bytes <= most || names_refuse(x, s, "all clients", what, most, advice);
}

bool names_have_room(struct request_context *x, struct session *s, uint64_t bytes, bool leaves)
{
	static const char what[] = "hold or wait for", advice[] = "UNLOCK some";
	uint64_t most = x->core->conf.limits.stored;

	if (most == 0)
		return true;
	if (!session_is_owner(x->core, s) && s->origin->names + bytes > most / NAMES_SHARE)
		return names_refuse(x, s, "clients of one peer", what, most / NAMES_SHARE, advice);
	if (x->sessions->origins.names + bytes > most)
		return names_refuse(x, s, "all clients", what, most, advice);
	return !leaves || kept_has_room(x, s, bytes);
}

bool crowd_has_room(struct request_context *x, struct session *s)
{
	if (!origin_is_crowded(s->origin, x->core->conf.limits.waiting))
		return true;
	send_crowded(x, s, x->request.tag);
	return false;
}

/* lua/rate.lua counts the uses. */

/* The question whether the session may have this use. The caller sets pending or about, and asks. */
static struct home_question *rate_question(struct request_context *x, const struct session *s, struct span name, const struct rate_use *use)
{
	struct home_question *q = home_question_new(x->engine, HOME_OF_RATE, name, s->origin);

	netstring_put(&q->words, SPAN("r"));
	netstring_put_int(&q->words, use->limit);
	netstring_put_int(&q->words, use->per);
	netstring_put_int(&q->words, use->cost);
	stored_put_terms(x, s, &q->words);
	return q;
}

/* "left when_ms", as the store writes it. */
static bool rate_read(struct span text, int64_t *ret_left, int64_t *ret_when_ms)
{
	int64_t n[2] = {0, 0};
	unsigned at = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == ' ' && at == 0)
			at = 1;
		else if (text.p[i] < '0' || text.p[i] > '9' || n[at] > INT64_MAX / 100)
			return false;
		else
			n[at] = 10 * n[at] + (text.p[i] - '0');
	}
	*ret_left = n[0];
	*ret_when_ms = n[1];
	return at == 1;
}

static void reply_rate(struct request_context *x, const struct pending *p, bool admitted, int64_t left, int64_t when_ms)
{
	struct reply r;

	metric_add(&x->core->metrics, admitted ? METRIC_RATES_ADMITTED : METRIC_RATES_REFUSED, 1);
	reply_begin(&r, session_line(x->sessions), span_of(p->tag), admitted ? "OK" : "BUSY");
	if (admitted)
		reply_int(&r, "left", left);
	reply_int(&r, admitted ? "reset_ms" : "retry_ms", when_ms);
	if (!admitted)
		reply_int(&r, "left", left);
	send_line(x, p->session, &r);
}

static void reply_unmetered(struct request_context *x, const struct pending *p)
{
	struct reply r;

	metric_add(&x->core->metrics, METRIC_RATES_UNMETERED, 1);
	reply_begin(&r, session_line(x->sessions), span_of(p->tag), "OK");
	reply_int(&r, "left", 0);
	reply_int(&r, "reset_ms", 0);
	reply_text(&r, "unmetered", SPAN("yes"));
	send_line(x, p->session, &r);
}

static void rate_judged(struct request_context *x, const struct home_question *q)
{
	const struct pending *p = q->pending;
	int64_t left, when_ms;

	metric_add(&x->core->metrics, METRIC_RATES_NEXT, q->place > 0);
	if (q->code == 'B')
		stored_send_full(x, p->session, span_of(p->tag), q->text);
	else if (rate_read(q->text, &left, &when_ms))
		reply_rate(x, p, q->code == 'Y', left, when_ms);
	else
		send_error(x, p->session, span_of(p->tag), ERROR_INTERNAL, "the store has told no numbers");
}

static void rate_lost(struct request_context *x, const struct home_question *q)
{
	const struct pending *p = q->pending;

	if (x->core->conf.home_lost == LOST_OPEN && !q->misnamed) {
		reply_unmetered(x, p);
		return;
	}
	metric_add(&x->core->metrics, METRIC_RATES_FAILED, 1);
	send_error(x, p->session, span_of(p->tag), ERROR_UNAVAILABLE, "the store that keeps this limit cannot be used: %.*s%s", (int)q->text.n,
	           q->text.p ? q->text.p : "", q->outcome == HOME_UNKNOWN ? "; it may have counted this request" : "");
}

/* The home is lost, and another store is asked instead. */
static bool rate_goes_on(struct request_context *x, struct home_question *q)
{
	if (q->outcome == HOME_ANSWERED || q->misnamed || x->core->conf.home_lost != LOST_NEXT || q->place + 1 >= x->core->conf.nodes)
		return false;
	home_ask(x->engine, q, q->place + 1);
	return true;
}

/* It is one use too many: it may be repeated in this many ms. */
static bool rate_is_refused(const struct home_question *q, int64_t *ret_when_ms)
{
	int64_t left;

	return q->outcome == HOME_ANSWERED && q->code == 'T' && rate_read(q->text, &left, ret_when_ms);
}

/* Answers the request by the outcome of q, and frees it. Its session is still there. */
static void rate_finish(struct request_context *x, struct pending *p, struct home_question *q)
{
	q->pending = p;
	core_answers(x->core, VERB_RATE);
	if (q->outcome == HOME_ANSWERED)
		rate_judged(x, q);
	else
		rate_lost(x, q);
	pending_answered(x, p);
	q->pending = NULL;
}

void rate_on_outcome(struct request_context *x, struct home_question *q)
{
	struct pending *p = q->pending;

	if (p->session && rate_goes_on(x, q))
		return;
	if (p->session)
		rate_finish(x, p, q);
	else
		pending_free(&x->engine->table.pendings, p);
	home_question_free(x->engine, q);
}


#define FAILED_A_STEP 128 /* turns that one step answers when the home cannot be asked */
#define RATE_MOST INT64_C(1000000000) /* of a limit: the numbers of a store's script are exact up to this */

struct rate_turn {
	TAILQ_ENTRY(rate_turn) in_line;
	struct rate_line *line;
	struct origin *origin;   /* it counts in its crowd */
	struct pending *pending; /* its session is still there */
	struct rate_use use;
	struct instant asked_at;
	struct instant until;    /* the end of the wait; INSTANT_NEVER: it has none */
	struct timer timer;      /* set to `until` */
	bool over;               /* the wait has ended: the next answer of the home decides */
};

struct rate_line {
	struct map_node node;
	struct span name;               /* owned */
	TAILQ_HEAD(, rate_turn) turns;
	struct home_question *question; /* the one under way; NULL: none */
	struct rate_turn *asked;        /* the turn for which it was asked; NULL: that is gone */
	struct rate_use use;            /* the last one that was asked for */
	struct timer timer;             /* until when that use is refused … */
	bool later;                     /* … or: the home failed so often in this step that the next turn waits for the next step */
};

/* --- lines --- */

MAP_MATCH(line_matches, struct rate_line, node, name.p, name.n)

void rate_lines_init(struct request_context *x)
{
	map_init(&x->rate_lines, x->engine->table.map.key);
}

static struct rate_line *line_of(struct request_context *x, struct span name)
{
	uint64_t hash = map_hash(&x->rate_lines, name.p, name.n);
	struct map_node *node = map_find(&x->rate_lines, hash, name.p, name.n, line_matches);
	struct rate_line *line;

	if (node)
		return container_of(node, struct rate_line, node);
	line = mem_alloc(sizeof(*line));
	line->name = mem_span(name);
	line->timer.kind = TIMER_RATE_LINE;
	TAILQ_INIT(&line->turns);
	map_insert(&x->rate_lines, &line->node, hash);
	return line;
}

static void line_free(struct request_context *x, struct rate_line *line)
{
	heap_cancel(&x->core->timers, &line->timer);
	map_remove(&x->rate_lines, &line->node);
	mem_span_free(&line->name);
	mem_free(line);
}

static bool use_equal(const struct rate_use *a, const struct rate_use *b)
{
	return a->limit == b->limit && a->per == b->per && a->cost == b->cost;
}

/* Asks for the first turn. The home's answer to a use also holds for the next turn with the same use, and for no other. Frees an empty line. */
static void line_look(struct request_context *x, struct rate_line *line)
{
	struct rate_turn *first = TAILQ_FIRST(&line->turns);

	if (line->question)
		return;
	if (!first) {
		line_free(x, line);
		return;
	}
	if (line->later || (timer_is_set(&line->timer) && use_equal(&first->use, &line->use)) || x->engine->draining || x->engine->stopping)
		return;
	heap_cancel(&x->core->timers, &line->timer);
	line->use = first->use;
	line->asked = first;
	line->question = rate_question(x, first->pending->session, line->name, &first->use);
	line->question->about = line;
	home_ask(x->engine, line->question, 0);
}

/* --- the end of a turn --- */

static void turn_free(struct request_context *x, struct rate_turn *turn)
{
	struct rate_line *line = turn->line;

	if (line->asked == turn)
		line->asked = NULL;
	TAILQ_REMOVE(&line->turns, turn, in_line);
	heap_cancel(&x->core->timers, &turn->timer);
	turn->pending->turn = NULL;
	origin_thin(turn->origin, 1);
	mem_free(turn);
}

/* The turn was answered. */
static void turn_answered(struct request_context *x, struct rate_turn *turn)
{
	struct pending *p = turn->pending;

	turn_free(x, turn);
	pending_answered(x, p);
}

static void turn_is_over(struct request_context *x, struct rate_turn *turn)
{
	const struct rate_line *line = turn->line;
	struct reply r;

	core_answers(x->core, VERB_RATE);
	metric_add(&x->core->metrics, METRIC_RATES_REFUSED, 1);
	reply_begin(&r, session_line(x->sessions), span_of(turn->pending->tag), "TIMEOUT");
	reply_ms(&r, "waited_ms", instant_diff(x->core->now, turn->asked_at));
	if (timer_is_set(&line->timer) && !line->later && use_equal(&turn->use, &line->use))
		reply_int(&r, "retry_ms", (instant_diff(line->timer.at, x->core->now) + MSEC - 1) / MSEC);
	send_line(x, turn->pending->session, &r);
	turn_answered(x, turn);
}

void rate_turn_drop(struct request_context *x, struct rate_turn *turn)
{
	struct rate_line *line = turn->line;
	struct pending *p = turn->pending;

	turn_free(x, turn);
	pending_free(&x->engine->table.pendings, p);
	line_look(x, line);
}

void rate_turn_cancel(struct request_context *x, struct rate_turn *turn)
{
	struct rate_line *line = turn->line;

	core_answers(x->core, VERB_RATE);
	send_error(x, turn->pending->session, span_of(turn->pending->tag), ERROR_CANCELLED, "the request was withdrawn%s",
	           line->asked == turn ? "; the store may have counted it" : "");
	turn_answered(x, turn);
	line_look(x, line);
}

/* --- events --- */

/* A line may have any number of turns, and a home that is down fails all of them without a pause. */
static void line_look_later(struct request_context *x, struct rate_line *line)
{
	line->later = true;
	heap_set(&x->core->timers, &line->timer, x->core->now);
}

void rate_line_on_outcome(struct request_context *x, struct home_question *q)
{
	struct rate_line *line = q->about;
	struct rate_turn *turn = line->asked;
	int64_t when_ms = 0;
	struct pending *p;

	if (turn && rate_goes_on(x, q))
		return;
	line->question = NULL;
	line->asked = NULL;
	if (turn && rate_is_refused(q, &when_ms)) {
		heap_set(&x->core->timers, &line->timer, instant_add(x->core->now, (when_ms > 0 ? when_ms : 1) * MSEC));
		if (turn->over)
			turn_is_over(x, turn);
	} else if (turn) {
		p = turn->pending;
		turn_free(x, turn);
		rate_finish(x, p, q);
	}
	if (q->outcome != HOME_ANSWERED && ++x->rates_failed >= core_portion(x->core, FAILED_A_STEP))
		line_look_later(x, line);
	home_question_free(x->engine, q);
	line_look(x, line);
}

void rate_timer_fired(struct request_context *x, struct timer *t)
{
	struct rate_turn *turn;
	struct rate_line *line;

	if (t->kind == TIMER_RATE_LINE) {
		line = container_of(t, struct rate_line, timer);
		line->later = false;
		x->rates_failed = 0;
		line_look(x, line);
		return;
	}
	turn = container_of(t, struct rate_turn, timer);
	line = turn->line;
	turn->over = true;
	if (line->asked == turn)
		return;
	turn_is_over(x, turn);
	line_look(x, line);
}

struct rate_turn *rate_turn_waiting(const struct session *s, struct span tag)
{
	const struct pending *p;

	TAILQ_FOREACH(p, &s->pendings, in_session)
		if (p->turn && span_equal(span_of(p->tag), tag))
			return p->turn;
	return NULL;
}

/* If several leave, the last leaves first, so that none of them is asked for as the next. */
void rate_turns_finish_up(struct request_context *x, struct session *s)
{
	struct pending *p, *next;

	for (p = TAILQ_LAST(&s->pendings, pendings); p; p = next) {
		next = TAILQ_PREV(p, pendings, in_session);
		if (!p->turn || p->turn->over)
			continue;
		p->turn->over = true;
		heap_cancel(&x->core->timers, &p->turn->timer);
		if (p->turn->line->asked != p->turn)
			rate_turn_cancel(x, p->turn);
	}
}

bool rate_turns_refuse(struct request_context *x, struct session *s, bool denied, int64_t *left)
{
	struct pending *p, *next;
	struct rate_line *line;
	unsigned by;

	for (p = TAILQ_LAST(&s->pendings, pendings); p; p = next) {
		next = TAILQ_PREV(p, pendings, in_session);
		if (!p->turn || (denied && session_may_lock(x->core, s, p->turn->line->name, &by)))
			continue;
		if ((*left)-- <= 0)
			return false;
		line = p->turn->line;
		core_answers(x->core, VERB_RATE);
		(denied ? send_revoked : send_draining)(x, s, span_of(p->tag));
		turn_answered(x, p->turn);
		line_look(x, line);
	}
	return true;
}

void rate_lines_free_all(struct request_context *x)
{
	struct map_node *node;
	struct rate_line *line;
	struct rate_turn *turn;
	struct pending *p;

	while ((node = map_next(&x->rate_lines, NULL))) {
		line = container_of(node, struct rate_line, node);
		while ((turn = TAILQ_FIRST(&line->turns))) {
			p = turn->pending;
			turn_free(x, turn);
			TAILQ_REMOVE(&p->session->pendings, p, in_session);
			pending_free(&x->engine->table.pendings, p);
		}
		if (line->question)
			line->question->about = NULL;
		line_free(x, line);
	}
	map_release(&x->rate_lines);
}

struct rate_asked rate_turn_asks(const struct rate_turn *turn)
{
	return (struct rate_asked){turn->line->name, turn->use, turn->asked_at, turn->until};
}

bool rate_turn_is_asked(const struct rate_turn *turn)
{
	return turn->line->asked == turn;
}

/* --- the request --- */

static bool rate_is_allowed(struct request_context *x, struct session *s, const struct rate_use *use, bool waits)
{
	if (!name_is_allowed(x, s))
		return false;
	if (use->limit < 1 || use->per < 1)
		send_invalid(x, s, ERROR_ARG, "RATE needs limit= and per=, both above 0, as in limit=20 per=60s");
	else if (use->per > RATE_WINDOW_MAX)
		return refuse_bound(x, s, FIELD_PER, RATE_WINDOW_MAX, "31 days");
	else if (use->limit > RATE_MOST)
		send_invalid(x, s, ERROR_LIMIT, "the limit of a RATE may be at most %" PRId64, RATE_MOST);
	else if (use->cost > use->limit)
		send_invalid(x, s, ERROR_ARG, "a cost of %" PRId64 " is above the limit of %" PRId64 ": it would never be admitted", use->cost, use->limit);
	else if (waits && x->engine->draining)
		send_draining(x, s, x->request.tag);
	else
		return pendings_within_limit(x, s) && (!waits || crowd_has_room(x, s));
	return false;
}

static void rate_wait(struct request_context *x, struct session *s, const struct rate_use *use, int64_t wait)
{
	struct rate_turn *turn = mem_alloc(sizeof(*turn));

	turn->line = line_of(x, x->request.word[0]);
	turn->pending = pending_uncounted(x, s, NULL);
	turn->pending->turn = turn;
	turn->origin = s->origin;
	origin_crowd(turn->origin, 1);
	turn->use = *use;
	turn->asked_at = x->core->asked_at;
	turn->timer.kind = TIMER_RATE_TURN;
	TAILQ_INSERT_TAIL(&turn->line->turns, turn, in_line);
	turn->until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(turn->asked_at, wait);
	if (wait != WAIT_FOREVER)
		heap_set(&x->core->timers, &turn->timer, turn->until);
	line_look(x, turn->line);
}

static int64_t field_or(const struct request *q, enum field field, int64_t otherwise)
{
	return request_has(q, field) ? q->field[field].number : otherwise;
}

void serve_RATE(struct request_context *x, struct session *s)
{
	const struct request *r = &x->request;
	struct rate_use use = {field_or(r, FIELD_LIMIT, 0), field_or(r, FIELD_PER, 0), field_or(r, FIELD_COST, 1)};
	int64_t wait = field_or(r, FIELD_WAIT, 0);
	struct home_question *q;

	if (!rate_is_allowed(x, s, &use, wait > 0))
		return;
	if (wait > 0) {
		rate_wait(x, s, &use, wait);
		return;
	}
	q = rate_question(x, s, r->word[0], &use);
	q->pending = pending_of_request(x, s, NULL);
	home_ask(x->engine, q, 0);
}
