/* SPDX-License-Identifier: BSD-2-Clause */
/* HELP, SHOW, LIST, STATS: what only looks. */
#include "daemon/core/command.h"
#include "daemon/core/page.h"

#include <inttypes.h>
#include <stdlib.h>

#define ROWS_DEFAULT 1000
#define ROWS_MOST 10000

static void row_begin(struct commander *x, struct reply *r)
{
	reply_begin(r, session_line(x->sessions), x->request.tag, "*");
}

static void row_end(struct commander *x, struct session *s, struct reply *r)
{
	session_send(x->sessions, s, r->start, reply_end(r));
}

static void rows_done(struct commander *x, struct session *s, uint64_t n, int64_t more)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), x->request.tag, "OK");
	reply_int(&r, "n", (int64_t)n);
	if (more >= 0)
		reply_int(&r, "more", more);
	row_end(x, s, &r);
}

/* Rows that began when s->unsent was `begin` fill a quarter of its output: one answer must not overflow it. */
static bool answer_is_long(const struct commander *x, const struct session *s, size_t begin)
{
	uint64_t most = x->core->conf.limits.output / 4;

	return most > 0 && s->unsent - begin >= most;
}

static void row_help(struct commander *x, struct session *s, enum verb verb)
{
	char usage[512];
	struct reply r;
	size_t n = command_usage(verb, usage, sizeof(usage));

	row_begin(x, &r);
	reply_text(&r, "verb", span_of(command_table[verb].word));
	reply_text(&r, "usage", (struct span){usage, n});
	reply_text(&r, "help", span_of(command_table[verb].help));
	row_end(x, s, &r);
}

void serve_HELP(struct commander *x, struct session *s)
{
	enum verb verb;

	if (x->request.words == 0) {
		for (verb = 0; verb < VERB_N; verb++)
			row_help(x, s, verb);
		rows_done(x, s, VERB_N, -1);
		return;
	}
	verb = command_find(x->request.word[0]);
	if (verb == VERB_N) {
		command_reply_error(x, s, x->request.tag, ERROR_NOTFOUND, "no such request: HELP lists them");
		return;
	}
	row_help(x, s, verb);
	rows_done(x, s, 1, -1);
}

/* One without a connection says since when, and for how much longer. */
static void reply_session(const struct commander *x, struct reply *r, const struct session *s)
{
	reply_int(r, "session", (int64_t)s->serial);
	if (s->label)
		reply_text(r, "name", span_of(s->label));
	if (s->peer.address[0])
		reply_text(r, "peer", span_of(s->peer.address));
	if (s->peer.is_unix) {
		reply_int(r, "pid", s->peer.pid);
		reply_int(r, "uid", s->peer.uid);
	}
	if (s->detached) {
		reply_ms(r, "detached_ms", instant_diff(x->core->now, s->detached_at));
		reply_ms(r, "grace_ms", instant_diff(s->grace.at, x->core->now));
	}
}

static void reply_texts(struct reply *r, const struct claim *c)
{
	if (c->owner)
		reply_text(r, "owner", claim_owner(c));
	if (c->note)
		reply_text(r, "note", (struct span){c->note, c->note_n});
}

static void row_holder(struct commander *x, struct session *s, const struct lock *l)
{
	struct reply r;

	row_begin(x, &r);
	reply_text(&r, "role", SPAN("holder"));
	reply_int(&r, "pos", 0);
	reply_session(x, &r, l->holder->session);
	reply_int(&r, "fence", l->holder->fence);
	reply_ms(&r, "held_ms", instant_diff(x->core->now, l->holder->granted_at));
	reply_ms(&r, "valid_ms", instant_diff(lock_deadline(&x->engine->table, l), x->core->now));
	reply_int(&r, "count", l->holder->count);
	reply_texts(&r, l->holder);
	row_end(x, s, &r);
}

/* Somebody else's: as the stores said last. */
static void reply_elsewhere(struct reply *r, const struct lock *l)
{
	char host[sizeof(l->elsewhere.host) + 1] = "@";

	memcpy(host + 1, l->elsewhere.host, sizeof(l->elsewhere.host));
	if (l->elsewhere.foreign)
		reply_text(r, "holder", SPAN("foreign"));
	else if (l->elsewhere.host[0])
		reply_text(r, "holder", span_of(host));
}

static void row_elsewhere(struct commander *x, struct session *s, const struct lock *l)
{
	struct reply r;

	row_begin(x, &r);
	reply_text(&r, "role", SPAN("holder"));
	reply_int(&r, "pos", 0);
	reply_elsewhere(&r, l);
	reply_int(&r, "ttl_ms", l->elsewhere.pttl_ms);
	row_end(x, s, &r);
}

static void row_waiter(struct commander *x, struct session *s, const struct claim *c, unsigned pos)
{
	struct reply r;

	row_begin(x, &r);
	reply_text(&r, "role", SPAN("waiter"));
	reply_int(&r, "pos", pos);
	reply_session(x, &r, c->session);
	reply_ms(&r, "waited_ms", instant_diff(x->core->now, c->asked_at));
	reply_texts(&r, c);
	row_end(x, s, &r);
}

void serve_SHOW(struct commander *x, struct session *s)
{
	const struct lock *l = lock_find(&x->engine->table, x->request.word[0]);
	const struct claim *c;
	unsigned rows = 0, pos = 0, left_out = 0;
	size_t begin = s->unsent;

	if (l && l->holder) {
		row_holder(x, s, l);
		rows++;
	} else if (l && l->state != LOCK_IDLE && l->elsewhere.known) {
		row_elsewhere(x, s, l);
		rows++;
	}
	if (l) {
		TAILQ_FOREACH(c, &l->line, in_lock) {
			if (!c->patient)
				continue; /* it is there for one round, and waits for nobody */
			if (answer_is_long(x, s, begin)) {
				left_out++;
				continue;
			}
			row_waiter(x, s, c, ++pos);
			rows++;
		}
	}
	rows_done(x, s, rows, left_out > 0 ? (int64_t)left_out : -1);
}

static struct span request_text(const struct request *q, enum field f)
{
	return request_has(q, f) ? q->field[f].text : SPAN("");
}

static int row_order(const void *a, const void *b)
{
	return span_compare(lock_name(*(const struct lock *const *)a), lock_name(*(const struct lock *const *)b));
}

static void row_lock(struct commander *x, struct session *s, const struct lock *l)
{
	char who[WHO_MAX];
	struct reply r;

	row_begin(x, &r);
	reply_text(&r, "name", lock_name(l));
	if (l->holder) {
		reply_int(&r, "fence", l->holder->fence);
		reply_int(&r, "session", (int64_t)l->holder->session->serial);
		reply_text(&r, "holder", (struct span){who, session_who(l->holder->session, who)});
		reply_ms(&r, "held_ms", instant_diff(x->core->now, l->holder->granted_at));
		reply_ms(&r, "valid_ms", instant_diff(lock_deadline(&x->engine->table, l), x->core->now));
		reply_int(&r, "count", l->holder->count);
	} else if (l->elsewhere.known) {
		reply_elsewhere(&r, l);
		if (l->elsewhere.foreign)
			reply_int(&r, "ttl_ms", l->elsewhere.pttl_ms);
	}
	reply_int(&r, "waiters", l->waiting);
	row_end(x, s, &r);
}

static void list_locks(struct commander *x, struct session *s, size_t most)
{
	const struct request *q = &x->request;
	struct span prefix = request_text(q, FIELD_PREFIX), after = request_text(q, FIELD_AFTER);
	struct page page = {.most = most};
	struct map_node *at = NULL;
	size_t begin = s->unsent, i;

	page.row = (const struct lock **)arena_alloc(&x->core->out->arena, (most + 1) * sizeof(*page.row));
	while ((at = map_next(&x->engine->table.map, at))) {
		const struct lock *l = container_of(at, struct lock, node);

		if (l->state == LOCK_IDLE || !span_starts(lock_name(l), prefix))
			continue;
		if (request_has(q, FIELD_AFTER) && span_compare(lock_name(l), after) <= 0)
			continue;
		page_add(&page, l);
	}
	qsort(page.row, page.n, sizeof(*page.row), row_order);
	for (i = 0; i < page.n && !answer_is_long(x, s, begin); i++)
		row_lock(x, s, page.row[i]);
	rows_done(x, s, i, (int64_t)(page.more + page.n - i));
}

static void row_session(struct commander *x, struct session *to, const struct session *s)
{
	struct reply r;

	row_begin(x, &r);
	reply_session(x, &r, s);
	reply_ms(&r, "age_ms", instant_diff(x->core->now, s->opened_at));
	reply_ms(&r, "idle_ms", instant_diff(x->core->now, s->heard_at));
	reply_int(&r, "held", s->held);
	reply_int(&r, "waiting", s->waiting);
	row_end(x, to, &r);
}

static int serial_order(const void *a, const void *b)
{
	const struct session *const *p = a, *const *q = b;

	return ((*p)->serial > (*q)->serial) - ((*p)->serial < (*q)->serial);
}

static bool session_is_listed(const struct session *s, uint64_t beyond, struct span prefix)
{
	return s->serial > beyond && span_starts(span_of(s->label ? s->label : ""), prefix);
}

/* prefix is of the label, after is a session number: the order of rows. */
static void list_sessions(struct commander *x, struct session *s, size_t most)
{
	struct span prefix = request_text(&x->request, FIELD_PREFIX), after = request_text(&x->request, FIELD_AFTER);
	uint64_t beyond = 0;
	const struct session **row, *away;
	size_t n = 0, begin = s->unsent, told;

	for (size_t i = 0; i < after.n && after.p[i] >= '0' && after.p[i] <= '9' && i < 19; i++)
		beyond = beyond * 10 + (uint64_t)(after.p[i] - '0');
	row = (const struct session **)arena_alloc(&x->core->out->arena, (x->sessions->count + x->sessions->detached_count + 1) * sizeof(*row));
	for (uint32_t i = 0; i < x->sessions->slots; i++) {
		const struct session *other = x->sessions->slot[i];

		if (other && session_is_listed(other, beyond, prefix))
			row[n++] = other;
	}
	TAILQ_FOREACH(away, &x->sessions->detached, in_detached) {
		if (session_is_listed(away, beyond, prefix))
			row[n++] = away;
	}
	qsort(row, n, sizeof(*row), serial_order);
	for (told = 0; told < n && told < most && !answer_is_long(x, s, begin); told++)
		row_session(x, s, row[told]);
	rows_done(x, s, told, (int64_t)(n - told));
}

static void list_nodes(struct commander *x, struct session *s)
{
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		const struct member *m = &x->engine->members.node[i];
		struct reply r;

		row_begin(x, &r);
		reply_text(&r, "node", span_of(x->core->conf.label[i]));
		reply_text(&r, "state", span_of(m->stalled ? "slow" : member_state_word(m->state)));
		if (m->reason[0])
			reply_text(&r, "reason", span_of(m->reason));
		if (m->state == MEMBER_QUARANTINED)
			reply_ms(&r, "left_ms", instant_diff(m->quarantine_end, x->core->now));
		if (m->rtt_us)
			reply_int(&r, "rtt_us", m->rtt_us);
		if (m->fence_seen)
			reply_int(&r, "fence", m->fence_seen);
		row_end(x, s, &r);
	}
	rows_done(x, s, x->core->conf.nodes, 0);
}

void serve_LIST(struct commander *x, struct session *s)
{
	const struct request *q = &x->request;
	struct span what = q->words > 0 ? q->word[0] : SPAN("locks");
	size_t most = ROWS_DEFAULT;

	if (request_has(q, FIELD_LIMIT)) {
		if (q->field[FIELD_LIMIT].number > ROWS_MOST) {
			command_mistake(x, s, ERROR_LIMIT, "limit may be at most %d", ROWS_MOST);
			return;
		}
		most = (size_t)q->field[FIELD_LIMIT].number;
	}
	if (span_equal(what, SPAN("locks")))
		list_locks(x, s, most);
	else if (span_equal(what, SPAN("sessions")))
		list_sessions(x, s, most);
	else if (span_equal(what, SPAN("nodes")))
		list_nodes(x, s);
	else
		command_mistake(x, s, ERROR_ARG, "LIST takes locks, sessions or nodes");
}

static int64_t failure_rate(const struct metrics *m)
{
	int64_t failures = m->value[METRIC_FAILURES];
	int64_t all = failures + m->value[METRIC_GRANTS] + m->value[METRIC_REFUSALS] + m->value[METRIC_TIMEOUTS];

	return all > 0 ? failures * 1000000 / all : 0;
}

void serve_STATS(struct commander *x, struct session *s)
{
	struct metrics now = x->core->metrics;

	now.value[METRIC_NAMES] = (int64_t)x->engine->table.map.count;
	now.value[METRIC_TIMERS] = (int64_t)x->core->timers.count;
	now.value[METRIC_FAILURE_RATE] = failure_rate(&now);
	for (unsigned i = 0; i < METRIC_N; i++) {
		bool in_ms = metric_table[i].kind == METRIC_COUNTER_MS || metric_table[i].kind == METRIC_PEAK_MS;
		struct reply r;

		row_begin(x, &r);
		reply_text(&r, "metric", span_of(metric_table[i].name));
		if (in_ms)
			reply_ms(&r, "value", now.value[i]);
		else
			reply_int(&r, "value", now.value[i]);
		row_end(x, s, &r);
	}
	rows_done(x, s, METRIC_N, -1);
}
